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
from cyxla.xla.cpu.kernel.hlo_quotes import quote
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.cpu.loops.index_map import Affine, Condition, Index, Space
from cyxla.xla.cpu.loops.nodes import Graph, IndexValue, Load, Node
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
    fused : dict of Instruction to int
        Instructions that are computed here rather than read from memory, with their numbers for quotes in the C.
    reads : Reads
        Arrays that the kernel reads; new ones are added.
    externals : dict of Value to callable, optional
        Lowerings (index) -> Node of values that the emitter supplies itself.

    Attributes
    ----------
    sizes : dict of Affine to Value
        Sizes known at run time that indices are below wherever a result matters, so that no mask has to say so.
    starts : mapping of int to int
        Numbers of the elements, by slot, at which the arrays begin that the kernel gets; 0 for others.
    """

    def __init__(
        self,
        space: Space,
        fused: Mapping[Instruction, int],
        reads: Reads,
        externals: dict[Value, Callable[[Index], Node]] | None = None,
    ) -> None:
        super().__init__()
        self.space, self.fused, self.reads, self._externals = space, fused, reads, externals or {}
        self._lowered: dict[_Request, Node] = {}
        self._integers: dict[Node, int] = {}
        self._external_instructions = {v.instruction for v in self._externals}
        self.sizes: dict[Affine, Value] = {}
        self.starts: Mapping[int, int] = {}

    def quote(self, ins: Instruction) -> str:
        """Return the quote of an instruction for a comment in the C; empty if it is not computed here."""
        return quote(ins, self.fused, self.reads.slots) if ins in self.fused else ""

    def constant(self, dtype: ElementType, value: Any) -> Node:
        """Return the constant of a value; start indices know those of integers."""
        node = super().constant(dtype, value)
        if dtype.is_integer:
            self._integers[node] = int(value)
        return node

    def value(self, ins: Instruction, index: Index) -> Node:
        """Lower the element of an instruction's result at an index."""
        started = self._start(ins, index)
        if isinstance(started, Node):
            return started
        stack = [started]
        while True:
            frame = stack[-1]
            if frame.requests:
                started = self._start(*frame.requests.pop())
                if isinstance(started, Node):
                    frame.results.append(started)
                else:
                    stack.append(started)
                continue
            done = frame.resume()
            if done is not None:
                self._lowered[frame.key] = done
                stack.pop()
                if not stack:
                    return done
                stack[-1].results.append(done)

    def _start(self, ins: Instruction, index: Index) -> Node | _Frame:
        node = self._lowered.get((ins, index))
        if node is not None:
            return node
        if ins.opcode == "constant":
            return self._constant(ins, index)
        if ins not in self.fused or ins in self._external_instructions:
            source = resolve(ins)
            if source in self._externals:
                return self._externals[source](index.at(source.shape.dims))
            if source.instruction.opcode == "constant":
                return self._constant(source.instruction, index)
            if source.instruction not in self.fused:
                return self._element(source, index)
            if source.instruction is not ins:
                return self._start(source.instruction, index.at(source.shape.dims))
        handler = HANDLERS.get(ins.opcode) or (_elementwise if OPCODES[ins.opcode].elementwise else None)
        if handler is None:
            raise UnimplementedError(f"{ins.opcode} cannot be lowered inside a fused loop", where=repr(ins))
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

    def start(self, ins: Instruction, node: Node, high: int) -> Affine:
        """Return the form of a start index that an instruction computes, clamped to [0, high]."""
        return self.clamp_start(node, high)

    def clamp_start(self, node: Node, high: int) -> Affine:
        """Return the form of a start index that is read at run time, clamped to [0, high]."""
        if node in self._integers:
            return Affine(min(max(self._integers[node], 0), high))
        return self.space.runtime(node, high)


class _Frame:
    """Suspended handler: the requests still to be lowered, and the nodes found."""

    __slots__ = ("generator", "key", "requests", "results")

    def __init__(self, key: _Request, generator: Generator[list[_Request], list[Node], Node]) -> None:
        self.key, self.generator = key, generator
        self.requests: list[_Request] = []
        self.results: Any = None  # nodes of the last requests; None before the first

    def resume(self) -> Node | None:
        """Run the handler to its next request; return its node if it is done."""
        try:
            requests = self.generator.send(self.results)
        except StopIteration as end:
            node: Node = end.value
            return node
        self.requests, self.results = requests[::-1], []
        return None


# ------------------------------------------------------------------------------------------------------------ handlers
_Steps = Generator[list[_Request], list[Node], Node]


def _elementwise(body: Body, ins: Instruction, index: Index) -> _Steps:
    dims = ins.shape.dims
    nodes = yield [(o, index if o.shape.dims == dims else body.space.scalar) for o in ins.operands]
    if body.sizes:
        if ins.opcode == "compare" and _is_live(body, ins, nodes):
            return body.constant(ElementType.PRED, True)
        if ins.opcode == "select" and nodes[0] is body.constant(ElementType.PRED, True):
            return nodes[1]
    return body.apply(ins, tuple(nodes))


def _is_live(body: Body, ins: Instruction, nodes: list[Node]) -> bool:
    """Return whether a comparison is a mask that is true wherever a result matters."""
    index, size = nodes if ins.attrs["direction"] == "LT" else nodes[::-1]
    if ins.attrs["direction"] not in ("LT", "GT") or not isinstance(index, IndexValue) or not isinstance(size, Load):
        return False
    value = body.sizes.get(index.form)
    return value is not None and size.slot == body.reads.slots.get(value) and size.dtype is value.shape.dtype


def _map(body: Body, ins: Instruction, index: Index) -> _Steps:
    nodes = yield [(o, index) for o in ins.operands]
    return body.map(ins, tuple(nodes))


def _broadcast(body: Body, ins: Instruction, index: Index) -> _Steps:
    operand = ins.operands[0]
    if operand.shape.size == 1:
        source = body.space.index(operand.shape.dims, _zeros(operand.shape.rank))
    else:
        source = body.space.index(operand.shape.dims, tuple(index.coordinates[d] for d in ins.attrs["dimensions"]))
    (node,) = yield [(operand, source)]
    return node


def _zeros(rank: int) -> tuple[Affine, ...]:
    return (Affine(0),) * rank


def _transpose(body: Body, ins: Instruction, index: Index) -> _Steps:
    coordinates: list[Affine] = [Affine(0)] * ins.shape.rank
    for out, dim in enumerate(ins.attrs["dimensions"]):
        coordinates[dim] = index.coordinates[out]
    (node,) = yield [(ins.operands[0], body.space.index(ins.operands[0].shape.dims, tuple(coordinates)))]
    return node


def _reverse(body: Body, ins: Instruction, index: Index) -> _Steps:
    coordinates = list(index.coordinates)
    for d in ins.attrs["dimensions"]:
        coordinates[d] = coordinates[d].scale(-1).shift(ins.shape.dims[d] - 1)
    (node,) = yield [(ins.operands[0], body.space.index(ins.shape.dims, tuple(coordinates)))]
    return node


def _slice(body: Body, ins: Instruction, index: Index) -> _Steps:
    slices = ins.attrs["slice"]
    coordinates = tuple(c.scale(s.stride).shift(s.start) for c, s in zip(index.coordinates, slices, strict=True))
    (node,) = yield [(ins.operands[0], body.space.index(ins.operands[0].shape.dims, coordinates))]
    return node


def _pad(body: Body, ins: Instruction, index: Index) -> _Steps:
    operand, filler = ins.operands
    conditions, coordinates = _padded(body.space, operand.shape.dims, ins.attrs["padding"], index)
    if any(body.space.decided(c) is False for c in conditions) or operand.shape.size == 0:
        (node,) = yield [(filler, body.space.scalar)]
        return node
    inside = (operand, body.space.index(operand.shape.dims, coordinates))
    if not conditions:
        (node,) = yield [inside]
        return node
    inside_node, outside_node = yield [inside, (filler, body.space.scalar)]
    return body.guard(conditions, inside_node, outside_node)


def _padded(
    space: Space, dims: tuple[int, ...], padding: Any, index: Index
) -> tuple[tuple[Condition, ...], tuple[Affine, ...]]:
    """Return the undecided conditions, and the operand's coordinates: right if they hold, in bounds otherwise."""
    conditions: list[Condition] = []
    coordinates: list[Affine] = []
    for c, n, p in zip(index.coordinates, dims, padding, strict=True):
        shifted, step = c.shift(-p.low), p.interior + 1
        own = [Condition(shifted, 0, (n - 1) * step)]
        if step > 1:
            own.append(Condition(space.remainder(shifted, step), 0, 0))
            shifted = space.quotient(shifted, step)
        undecided = tuple(m for m in own if space.decided(m) is not True)
        conditions += undecided
        coordinates.append(space.choice(undecided, shifted, n - 1) if undecided else shifted)
    return tuple(conditions), tuple(coordinates)


def _concatenate(body: Body, ins: Instruction, index: Index) -> _Steps:
    (axis,) = ins.attrs["dimensions"]
    pieces, start = [], 0
    for operand in ins.operands:
        size = operand.shape.dims[axis]
        condition = Condition(index.coordinates[axis], start, start + size - 1)
        if size and body.space.decided(condition) is not False:
            pieces.append((operand, condition, index.coordinates[axis].shift(-start)))
        start += size
    is_single = len(pieces) == 1 or body.space.decided(pieces[0][1])
    requests = []
    for operand, condition, shifted in pieces[:1] if is_single else pieces:
        coordinates = [shifted if is_single and d == axis else c for d, c in enumerate(index.coordinates)]
        if not is_single:
            coordinates[axis] = body.space.choice((condition,), shifted, operand.shape.dims[axis] - 1)
        requests.append((operand, body.space.index(operand.shape.dims, tuple(coordinates))))
    nodes = yield requests
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
    requests = start_requests(body, ins.operands[1:], operand.shape.rank)
    starts = yield requests
    coordinates = [
        body.space.add(c, body.start(i, s, n - size))
        for c, (i, _), s, n, size in zip(
            index.coordinates, requests, starts, operand.shape.dims, ins.shape.dims, strict=True
        )
    ]
    (node,) = yield [(operand, body.space.index(operand.shape.dims, tuple(coordinates)))]
    return node


def start_requests(body: Body, operands: tuple[Instruction, ...], rank: int) -> list[_Request]:
    """Return the requests for the start indices of dynamic-slice and dynamic-update-slice, in either form."""
    if len(operands) == 1 and operands[0].shape.rank == 1:  # the older form of the operation: one vector of indices
        return [(operands[0], body.space.index((rank,), (Affine(d),))) for d in range(rank)]
    return [(o, body.space.scalar) for o in operands]


def _gather(body: Body, ins: Instruction, index: Index) -> _Steps:
    operand, indices = ins.operands
    a, space = ins.attrs, body.space
    offset_dims = a["offset_dims"]
    batch = [c for d, c in enumerate(index.coordinates) if d not in offset_dims]
    requests = []
    for k in range(len(a["start_index_map"])):
        batch_coordinates = list(batch)
        if a["index_vector_dim"] < indices.shape.rank:
            batch_coordinates.insert(a["index_vector_dim"], Affine(k))
        requests.append((indices, space.index(indices.shape.dims, tuple(batch_coordinates))))
    starts = yield requests
    coordinates = [Affine(0)] * operand.shape.rank
    for k, d in enumerate(a["start_index_map"]):
        coordinates[d] = body.clamp_start(starts[k], operand.shape.dims[d] - a["slice_sizes"][d])
    for d, batch_dim in zip(a["operand_batching_dims"], a["start_indices_batching_dims"], strict=True):
        coordinates[d] = batch[batch_dim - (batch_dim > a["index_vector_dim"])]
    sliced = {*a["collapsed_slice_dims"], *a["operand_batching_dims"]}
    for d, out in zip([d for d in range(operand.shape.rank) if d not in sliced], offset_dims, strict=True):
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
