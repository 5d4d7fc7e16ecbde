"""Loop IR: the values of one loop body as a graph, made from fused instructions.

`Body.value` lowers an instruction's element at an index and follows its operands through fused instructions to loads;
the result is a graph of nodes (see `loops.nodes`). Handlers are generators that yield the (instruction, index) pairs
they need and get the nodes back, so that the depth of a chain is not limited by the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

from cyxla.errors import UnimplementedError
from cyxla.types import ElementType
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.quote import quote
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.cpu.loops.index_map import Affine, Condition, Index, Space
from cyxla.xla.cpu.loops.nodes import Graph, Node
from cyxla.xla.hlo import OPCODES, Instruction

TABLE_ELEMENTS = 16  # constants of up to this many elements are C tables in the kernel

_Request = tuple[Instruction, Index]
_Handler = Callable[["Body", Instruction, Index], Generator[list[_Request], "list[Node]", "Node"]]


class Reads:
    """Arrays that a kernel reads, by slot."""

    def __init__(self) -> None:
        self.slots: dict[Value, int] = {}

    def slot(self, value: Value) -> int:
        """Return the index of an array among the kernel's reads, appended if it is new."""
        return self.slots.setdefault(value, len(self.slots))

    @property
    def values(self) -> tuple[Value, ...]:
        """Arrays in the order of their slots."""
        return tuple(self.slots)


class Body(Graph):
    """Values of a loop body over one iteration space.

    Parameters
    ----------
    space : Space
        Iteration space of the indices.
    inside : dict of Instruction to int
        Instructions that are computed here rather than read from memory, with their numbers for quotes in the C.
    reads : Reads
        Arrays that the kernel reads; new ones are added.
    given : dict of Value to callable, optional
        Lowerings (index) -> Node of values that the emitter supplies itself.
    """

    def __init__(
        self,
        space: Space,
        inside: Mapping[Instruction, int],
        reads: Reads,
        given: dict[Value, Callable[[Index], Node]] | None = None,
    ) -> None:
        super().__init__()
        self.space, self.inside, self.reads, self._lowered_elsewhere = space, inside, reads, given or {}
        self._known: dict[_Request, Node] = {}
        self._integers: dict[Node, int] = {}
        self._given_instructions = {v.instruction for v in self._lowered_elsewhere}

    def quote(self, ins: Instruction) -> str:
        """Return the quote of an instruction for a comment in the C; empty if it is not computed here."""
        return quote(ins, self.inside, self.reads.slots) if ins in self.inside else ""

    def constant(self, dtype: ElementType, value: Any) -> Node:
        """Return the constant of a value; start indices know those of integers."""
        found = super().constant(dtype, value)
        if dtype.is_integer:
            self._integers[found] = int(value)
        return found

    def value(self, ins: Instruction, index: Index) -> Node:
        """Lower the element of an instruction's result at an index."""
        started = self._start(ins, index)
        if isinstance(started, Node):
            return started
        stack = [started]
        while True:
            frame = stack[-1]
            if frame.wanted:
                started = self._start(*frame.wanted.pop())
                if isinstance(started, Node):
                    frame.found.append(started)
                else:
                    stack.append(started)
                continue
            done = frame.resume()
            if done is not None:
                self._known[frame.key] = done
                stack.pop()
                if not stack:
                    return done
                stack[-1].found.append(done)

    def _start(self, ins: Instruction, index: Index) -> Node | _Frame:
        known = self._known.get((ins, index))
        if known is not None:
            return known
        if ins.opcode == "constant":
            return self._constant(ins, index)
        if ins not in self.inside or ins in self._given_instructions:
            source = resolve(ins)
            if source in self._lowered_elsewhere:
                return self._lowered_elsewhere[source](index.at(source.shape.dims))
            if source.instruction.opcode == "constant":
                return self._constant(source.instruction, index)
            if source.instruction not in self.inside:
                return self._element(source, index)
            if source.instruction is not ins:
                return self._start(source.instruction, index.at(source.shape.dims))
        handler = HANDLERS.get(ins.opcode) or (_elementwise if OPCODES[ins.opcode].elementwise else None)
        if handler is None:
            raise UnimplementedError(f"{ins.opcode} inside a fused loop", where=repr(ins))
        return _Frame((ins, index), handler(self, ins, index))

    def _element(self, source: Value, index: Index) -> Node:
        return self.load(source.shape.dtype, self.reads.slot(source), index.linear)

    def _constant(self, ins: Instruction, index: Index) -> Node:
        literal, dtype = ins.attrs["literal"], ins.shape.dtype
        if literal.array.size == 1:
            return self.constant(dtype, literal.array.reshape(-1)[0])
        if literal.array.size <= TABLE_ELEMENTS and not dtype.is_complex:
            return self.table(literal, index.linear)
        return self._element(Value(ins), index)

    def clamped(self, node: Node, high: int) -> Affine:
        """Return the form of a start index that is read at run time, clamped to [0, high]."""
        if node in self._integers:
            return Affine(min(max(self._integers[node], 0), high))
        return self.space.runtime(node, high)


class _Frame:
    """Suspended handler: the requests still to be lowered, and the nodes found."""

    __slots__ = ("found", "generator", "key", "wanted")

    def __init__(self, key: _Request, generator: Generator[list[_Request], list[Node], Node]) -> None:
        self.key, self.generator = key, generator
        self.wanted: list[_Request] = []
        self.found: Any = None  # the nodes requested; None before the first request

    def resume(self) -> Node | None:
        """Run the handler to its next request; return its node if it is done."""
        try:
            asked = self.generator.send(self.found)
        except StopIteration as end:
            made: Node = end.value
            return made
        self.wanted, self.found = asked[::-1], []
        return None


# ------------------------------------------------------------------------------------------------------------ handlers
_Steps = Generator[list[_Request], list[Node], Node]


def _elementwise(body: Body, ins: Instruction, index: Index) -> _Steps:
    dims = ins.shape.dims
    nodes = yield [(o, index if o.shape.dims == dims else body.space.scalar) for o in ins.operands]
    return body.apply(ins, tuple(nodes))


def _map(body: Body, ins: Instruction, index: Index) -> _Steps:
    nodes = yield [(o, index) for o in ins.operands]
    return body.map(ins, tuple(nodes))


def _broadcast(body: Body, ins: Instruction, index: Index) -> _Steps:
    operand = ins.operands[0]
    if operand.shape.size == 1:
        at = body.space.index(operand.shape.dims, _zeros(operand.shape.rank))
    else:
        at = body.space.index(operand.shape.dims, tuple(index.coordinates[d] for d in ins.attrs["dimensions"]))
    (node,) = yield [(operand, at)]
    return node


def _zeros(rank: int) -> tuple[Affine, ...]:
    return (Affine(0),) * rank


def _transpose(body: Body, ins: Instruction, index: Index) -> _Steps:
    coordinates: list[Affine] = [Affine(0)] * ins.shape.rank
    for out, of in enumerate(ins.attrs["dimensions"]):
        coordinates[of] = index.coordinates[out]
    (node,) = yield [(ins.operands[0], body.space.index(ins.operands[0].shape.dims, tuple(coordinates)))]
    return node


def _reverse(body: Body, ins: Instruction, index: Index) -> _Steps:
    coordinates = list(index.coordinates)
    for d in ins.attrs["dimensions"]:
        coordinates[d] = coordinates[d].scaled(-1).shifted(ins.shape.dims[d] - 1)
    (node,) = yield [(ins.operands[0], body.space.index(ins.shape.dims, tuple(coordinates)))]
    return node


def _slice(body: Body, ins: Instruction, index: Index) -> _Steps:
    cuts = ins.attrs["slice"]
    at = tuple(c.scaled(s.stride).shifted(s.start) for c, s in zip(index.coordinates, cuts, strict=True))
    (node,) = yield [(ins.operands[0], body.space.index(ins.operands[0].shape.dims, at))]
    return node


def _pad(body: Body, ins: Instruction, index: Index) -> _Steps:
    operand, filler = ins.operands
    conditions, at = _padded(body.space, operand.shape.dims, ins.attrs["padding"], index)
    if any(c.decided is False for c in conditions) or operand.shape.size == 0:
        (node,) = yield [(filler, body.space.scalar)]
        return node
    inside = (operand, body.space.index(operand.shape.dims, at))
    if not conditions:
        (node,) = yield [inside]
        return node
    inner, outer = yield [inside, (filler, body.space.scalar)]
    return body.guard(conditions, inner, outer)


def _padded(
    space: Space, dims: tuple[int, ...], padding: Any, index: Index
) -> tuple[tuple[Condition, ...], tuple[Affine, ...]]:
    """Return the undecided conditions, and the operand's coordinates: right if they hold, in bounds otherwise."""
    conditions: list[Condition] = []
    at: list[Affine] = []
    for c, n, p in zip(index.coordinates, dims, padding, strict=True):
        moved, step = c.shifted(-p.low), p.interior + 1
        mine = [Condition(moved, 0, (n - 1) * step)]
        if step > 1:
            mine.append(Condition(space.remainder(moved, step), 0, 0))
            moved = space.quotient(moved, step)
        unsettled = tuple(m for m in mine if m.decided is not True)
        conditions += unsettled
        at.append(space.choice(unsettled, moved, n - 1) if unsettled else moved)
    return tuple(conditions), tuple(at)


def _concatenate(body: Body, ins: Instruction, index: Index) -> _Steps:
    (axis,) = ins.attrs["dimensions"]
    pieces, start = [], 0
    for operand in ins.operands:
        size = operand.shape.dims[axis]
        condition = Condition(index.coordinates[axis], start, start + size - 1)
        if size and condition.decided is not False:
            pieces.append((operand, condition, index.coordinates[axis].shifted(-start)))
        start += size
    only = len(pieces) == 1 or pieces[0][1].decided
    wanted = []
    for operand, condition, moved in pieces[:1] if only else pieces:
        safe = [moved if only and d == axis else c for d, c in enumerate(index.coordinates)]
        if not only:
            safe[axis] = body.space.choice((condition,), moved, operand.shape.dims[axis] - 1)
        wanted.append((operand, body.space.index(operand.shape.dims, tuple(safe))))
    nodes = yield wanted
    result = nodes[-1]
    for node, (_, condition, _) in zip(nodes[-2::-1], pieces[-2::-1], strict=False):
        result = body.guard((condition,), node, result)
    return result


def _iota(body: Body, ins: Instruction, index: Index) -> _Steps:
    yield []
    return body.index_value(
        ins.shape.dtype, index.coordinates[ins.attrs["iota_dimension"]] if ins.shape.rank else Affine(0)
    )


def _dynamic_slice(body: Body, ins: Instruction, index: Index) -> _Steps:
    operand = ins.operands[0]
    starts = yield start_requests(body, ins.operands[1:], operand.shape.rank)
    at = [
        body.space.add(c, body.clamped(s, n - size))
        for c, s, n, size in zip(index.coordinates, starts, operand.shape.dims, ins.shape.dims, strict=True)
    ]
    (node,) = yield [(operand, body.space.index(operand.shape.dims, tuple(at)))]
    return node


def start_requests(body: Body, operands: tuple[Instruction, ...], rank: int) -> list[_Request]:
    """Return the requests for the start indices of dynamic-slice and dynamic-update-slice, in either form."""
    if len(operands) == 1 and operands[0].shape.rank == 1:  # the old form: one vector
        return [(operands[0], body.space.index((rank,), (Affine(d),))) for d in range(rank)]
    return [(o, body.space.scalar) for o in operands]


def _gather(body: Body, ins: Instruction, index: Index) -> _Steps:
    operand, indices = ins.operands
    a, space = ins.attrs, body.space
    offset_dims = a["offset_dims"]
    batch = [c for d, c in enumerate(index.coordinates) if d not in offset_dims]
    wanted = []
    for k in range(len(a["start_index_map"])):
        at = list(batch)
        if a["index_vector_dim"] < indices.shape.rank:
            at.insert(a["index_vector_dim"], Affine(k))
        wanted.append((indices, space.index(indices.shape.dims, tuple(at))))
    starts = yield wanted
    coordinates = [Affine(0)] * operand.shape.rank
    for k, d in enumerate(a["start_index_map"]):
        coordinates[d] = body.clamped(starts[k], operand.shape.dims[d] - a["slice_sizes"][d])
    for d, batch_dim in zip(a["operand_batching_dims"], a["start_indices_batching_dims"], strict=True):
        coordinates[d] = batch[batch_dim - (batch_dim > a["index_vector_dim"])]
    gone = {*a["collapsed_slice_dims"], *a["operand_batching_dims"]}
    for d, out in zip([d for d in range(operand.shape.rank) if d not in gone], offset_dims, strict=True):
        coordinates[d] = space.add(coordinates[d], index.coordinates[out])
    (node,) = yield [(operand, space.index(operand.shape.dims, tuple(coordinates)))]
    return node


def _dimension_size(body: Body, ins: Instruction, index: Index) -> _Steps:
    yield []
    return body.constant(ins.shape.dtype, ins.operands[0].shape.dims[ins.attrs["dimensions"][0]])


HANDLERS: dict[str, _Handler] = {
    "broadcast": _broadcast,
    "bitcast-convert": _elementwise,
    "concatenate": _concatenate,
    "dynamic-slice": _dynamic_slice,
    "gather": _gather,
    "get-dimension-size": _dimension_size,
    "iota": _iota,
    "map": _map,
    "pad": _pad,
    "reverse": _reverse,
    "slice": _slice,
    "transpose": _transpose,
}
