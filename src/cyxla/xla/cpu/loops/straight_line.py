"""Straight-line C of computations over scalars and small arrays, each element a local.

While loops with little state are emitted so: element-wise instructions and data movement through `loops.loop_ir.Body`,
small reductions and dots unrolled, nested loops and branches as loops and branches of C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar, scalar_computation
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.cpu.kernel.carried_products import barrier_if, loop_carries_product
from cyxla.xla.cpu.kernel.groups import is_loopable
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import is_forwarding, leaves, own_leaves, resolve
from cyxla.xla.cpu.loops.hoisting import LoopNest, reachable
from cyxla.xla.cpu.loops.index_map import Affine, Condition, Index, Space
from cyxla.xla.cpu.loops.loop_ir import Body, Reads, start_requests
from cyxla.xla.cpu.loops.nodes import Node
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.passes.simplify.index_ranges import IndexRanges
from cyxla.xla.passes.simplify.trip_count import known_trip_count

MAX_ELEMENTS = 32  # elements of one array
MAX_NODES = 1500  # nodes of one kernel, a bound on gcc's time
DEPENDENT_OP_NS = 1.0  # time of an operation in a chain of dependent ones
POLL_EVERY = machine.POLL_NS  # ns of estimated work between two checks for cancellation
_CHUNK_NS = 1 << 14  # ns of estimated work in a loop without checks, inside of one with checks
SHORT_NS = 2 * _CHUNK_NS  # ns of a loop that leaves the checks to outer ones
_MAX_NS = 1e12  # bound on any estimate
_ASSUMED_TRIP_COUNT = 10_000  # of loops without a known trip count
_WITHOUT_CODE = frozenset({"parameter", "constant"})

#: Elements of an array as C expressions in register types, or the array's slot among the reads.
ArraySource = list[str] | int


class UnsuitableLoopError(Exception):
    """Raised for a loop that is better run by kernels of its instructions; the message is the reason."""


@dataclass
class KernelState:
    """State shared by the scopes of one kernel.

    Attributes
    ----------
    reads : Reads
        Arrays that the kernel reads from memory.
    names : CWriter
        Source of unique names.
    tables : dict
        Names of constant tables by literal.
    nodes : int
        Number of values created so far.
    numbers : dict of Instruction to int
        Numbers of the instructions for quotes in the C.
    bodies : list of Body
        Loop IR of the scopes, outer ones first.
    ranges : IndexRanges or None
        Ranges of scalars in the program.
    """

    reads: Reads
    names: CWriter
    tables: dict[Any, str] = field(default_factory=dict)
    nodes: int = 0
    numbers: dict[Instruction, int] = field(default_factory=dict)
    bodies: list[Body] = field(default_factory=list)
    ranges: IndexRanges | None = None


class _RangedBody(Body):
    """Loop body whose start indices need no clamp where ranges of scalars tell that they are in bounds."""

    def __init__(
        self,
        space: Space,
        fused: Mapping[Instruction, int],
        reads: Reads,
        externals: dict[Value, Callable[[Index], Node]],
        ranges: IndexRanges | None,
    ) -> None:
        super().__init__(space, fused, reads, externals)
        self._ranges = ranges

    def start(self, ins: Instruction, node: Node, high: int) -> Affine:
        """Return the form of a start index, without a clamp if it is known to be in bounds."""
        found = None if self._ranges is None or node in self._integers else self._ranges.of(ins)
        if found is not None and found[0] >= 0 and found[1] <= high:
            return self.space.in_range(node, high)
        return super().start(ins, node, high)


class Scope:
    """Computation emitted as straight-line code.

    Parameters
    ----------
    kernel_state : Shared
        State of the kernel it is part of.
    sources : dict of Value to list of str or int
        Sources of the values it starts from.
    computation : Computation, optional
        Computation whose instructions it may emit.
    """

    def __init__(
        self, kernel_state: KernelState, sources: dict[Value, ArraySource], computation: Computation | None = None
    ) -> None:
        self.kernel_state, self.sources = kernel_state, dict(sources)
        self.space = Space(())
        expressions, self.statements = _partition(computation) if computation is not None else ([], [])
        numbers = kernel_state.numbers
        fused = {ins: numbers.setdefault(ins, len(numbers)) for ins in expressions}
        externals = {v: self._reader(v) for v in (*sources, *(v for i in self.statements for v in own_leaves(i)))}
        self.body = _RangedBody(self.space, fused, kernel_state.reads, externals, kernel_state.ranges)
        kernel_state.bodies.append(self.body)
        self.nest = LoopNest(self.body, [], kernel_state.names.child())
        self.nest.tables = kernel_state.tables
        self.c = self.nest.writers[0]
        self.cost = 0.0

    @staticmethod
    def of(kernel_state: KernelState, computation: Computation, parameters: Sequence[ArraySource]) -> Scope:
        """Return the scope of a computation, given the sources of its parameters' leaves."""
        own = [v for p in computation.parameters for v in own_leaves(p)]
        return Scope(kernel_state, dict(zip(own, parameters, strict=True)), computation)

    def run(self) -> None:
        """Emit the statements in order: loops, branches, reductions. Other values are emitted when they are used."""
        for ins in self.statements:
            if ins.opcode != "dynamic-update-slice" or ins.shape.size <= MAX_ELEMENTS:
                for value, source in zip(own_leaves(ins), _STATEMENTS[ins.opcode](self, ins), strict=True):
                    self.sources[value] = source

    # ------------------------------------------------------------------------------------------------ values
    def source(self, value: Value) -> ArraySource:
        """Return the source of an array, which is computed if it has none yet."""
        if value in self.sources:
            return self.sources[value]
        if value.shape.size > MAX_ELEMENTS:
            if value.instruction.opcode == "constant":
                return self.kernel_state.reads.slot(value)
            raise UnsuitableLoopError(f"an array of {value.shape.size} elements")
        nodes = [self.node(value, e) for e in range(value.shape.size)]
        return self.texts(nodes)

    def elements(self, value: Value) -> list[str]:
        """Return the elements of an array as locals."""
        source = self.source(value)
        if isinstance(source, list):
            return source
        if value.shape.size > MAX_ELEMENTS:
            raise UnsuitableLoopError(f"an array of {value.shape.size} elements")
        return self.texts([self.node(value, e) for e in range(value.shape.size)])

    def node(self, value: Value, element: int) -> Node:
        """Return the node of one element of an array."""
        source = self.sources.get(value)
        if isinstance(source, list):
            return self._external(value, element, source)
        if isinstance(source, int):
            return self._load(value, source, Affine(element))
        self._check_size()
        dims = value.shape.dims
        return self.body.value(value.instruction, self.space.index_at(dims, Affine(element)))

    def texts(self, nodes: Sequence[Node], forms: Sequence[Affine] = ()) -> list[str]:
        """Emit nodes; return their C."""
        self._check_size()
        self.nest.write(reachable(nodes, forms)[0])
        return [self.nest.text(n) for n in nodes]

    def _check_size(self) -> None:
        if self.kernel_state.nodes + len(self.body.nodes) > MAX_NODES:
            raise UnsuitableLoopError(f"more than {MAX_NODES} operations")

    def _reader(self, value: Value) -> Callable[[Index], Node]:
        def read(index: Index) -> Node:
            source = self.sources.get(value)
            if source is None:
                raise UnsuitableLoopError(f"{value.instruction.opcode} is read before it is computed")
            linear = index.linear
            if isinstance(source, int):
                return self._load(value, source, linear)
            if linear.is_constant:
                return self._external(value, linear.constant, source)
            node = self._external(value, len(source) - 1, source)
            for e in range(len(source) - 2, -1, -1):
                element = self._external(value, e, source)
                node = self.body.guard((Condition(linear, e, e),), element, node)
            return node

        return read

    def _load(self, value: Value, slot: int, form: Affine) -> Node:
        return self.body.load(value.shape.dtype, slot, form)

    def _external(self, value: Value, element: int, elements: list[str]) -> Node:
        node = self.body.external(value.shape.dtype, (value, element))
        self.nest.set_external(node, elements[element], 0)
        return node

    # ------------------------------------------------------------------------------------------------ in memory
    def update(self, chains: Mapping[str, Sequence[Instruction]]) -> None:
        """Emit updates of arrays in memory, by their pointers, in order; nothing may read the arrays afterwards.

        All elements are computed before any is stored, since those of one array may depend on another's old ones.
        """
        stores = [(p, *store) for p, chain in chains.items() for ins in chain for store in self._stores(ins)]
        for _, form, node in stores:
            self.texts([node], [form])
        for pointer, form, node in stores:
            value = scalar.store(node.dtype, self.nest.text(node))
            self.c.line(f"{pointer}[{self.nest.form(form)}] = {value};")

    def _stores(self, ins: Instruction) -> list[tuple[Affine, Node]]:
        operand, new, *_ = ins.operands
        if new.shape.size > MAX_ELEMENTS:
            raise UnsuitableLoopError(f"an update of {new.shape.size} elements")
        starts = self.starts(ins)
        stores = []
        for e in range(new.shape.size):
            coordinates = [self.space.add(s, c) for s, c in zip(starts, _coordinates(new, e), strict=True)]
            form = self.space.index(operand.shape.dims, tuple(coordinates)).linear
            stores.append((form, self.node(resolve(new), e)))
        return stores

    def starts(self, ins: Instruction) -> list[Affine]:
        """Return the clamped start indices of a dynamic-update-slice."""
        operand, new, *starts = ins.operands
        requests = start_requests(self.body, tuple(starts), operand.shape.rank)
        max_starts = [n - size for n, size in zip(operand.shape.dims, new.shape.dims, strict=True)]
        return [
            self.body.start(i, self.body.value(i, at), high) for (i, at), high in zip(requests, max_starts, strict=True)
        ]

    # ------------------------------------------------------------------------------------------------ loops
    def loop(self, ins: Instruction, pointers: dict[int, str] | None = None) -> list[ArraySource]:
        """Emit a loop; return the sources of its final state. Leaves in `pointers` are updated in memory."""
        pointers = pointers or {}
        body, condition = ins.called
        values, initial = own_leaves(body.parameters[0]), leaves(ins.operands[0])
        is_invariant = [r == p for r, p in zip(leaves(body.root), values, strict=True)]
        state: list[ArraySource] = []
        for n, value in enumerate(initial):
            if is_invariant[n] or n in pointers:
                state.append(self.source(value))
            else:
                state.append([self._variable(value.shape.dtype, x) for x in self.elements(value)])
        trips = known_trip_count(ins)
        outer, self.c = self.c, self.c.child()
        self.c.lines(barrier_if(loop_carries_product(body)))
        ns = self._iteration(body, condition if trips is None else None, state, is_invariant, pointers)
        iteration, self.c = self.c.written, outer
        write_loop(self.c, trips, iteration, ns, polls=trips is None or trips * ns > SHORT_NS)
        self.cost += min(ns, _MAX_NS) * (_ASSUMED_TRIP_COUNT if trips is None else trips)
        return state

    def _variable(self, dtype: ElementType, value: str) -> str:
        name = self.c.name("x")
        self.c.line(f"{scalar.register_type(dtype)} {name} = {value};")
        return name

    def _iteration(
        self,
        body: Computation,
        condition: Computation | None,
        state: Sequence[ArraySource],
        is_invariant: Sequence[bool],
        pointers: dict[int, str],
    ) -> float:
        cost = 0.0
        if condition is not None:
            test = Scope.of(self.kernel_state, condition, state)
            test.run()
            (result,) = test.elements(leaves(condition.root)[0])
            self.include(test)
            self.c.line(f"if (!{result}) break;")
            cost += test.cost
        scope = Scope.of(self.kernel_state, body, state)
        scope.run()
        changed = [n for n, invariant in enumerate(is_invariant) if not invariant and n not in pointers]
        next_state = {n: scope.elements(leaves(body.root)[n]) for n in changed}
        scope.update({pointer: update_chain(body, n) or [] for n, pointer in pointers.items()})
        self.include(scope)
        pairs = [(old, new) for n in changed for old, new in zip(state[n], next_state[n], strict=True)]  # type: ignore[arg-type]
        assign_parallel(self.c, pairs)
        return cost + scope.cost

    def include(self, scope: Scope) -> None:
        """Append the lines of a nested scope."""
        scope.cost += len(scope.body.nodes) * DEPENDENT_OP_NS
        self.kernel_state.nodes += len(scope.body.nodes)
        self._check_size()
        self.c.lines(scope.c.written)


def write_loop(c: CWriter, trips: int | None, iteration: list[str], ns: float, *, polls: bool) -> None:
    """Write a loop that looks now and then whether it is cancelled.

    Parameters
    ----------
    c : CWriter
        Writer.
    trips : int or None
        Number of iterations; None if the iteration ends the loop.
    iteration : list of str
        Lines of an iteration.
    ns : float
        Estimated time of an iteration.
    polls : bool
        Whether the loop checks for cancellation.
    """
    counter, step = c.name("t"), int(min(ns, POLL_EVERY)) + 1
    poll = f"if ((s = ctx->poll(ctx))) return s; budget = {POLL_EVERY};"
    chunk = _CHUNK_NS // step
    if (
        polls and trips is not None and chunk > 1 and trips > 2 * chunk
    ):  # a loop without checks may become one of vectors
        end = c.name("e")
        with c.block(f"for (int64_t {counter} = 0; {counter} < {trips};)"):
            c.line(f"const int64_t {end} = {trips} - {counter} < {chunk} ? {trips} : {counter} + {chunk};")
            with c.block(f"for (; {counter} < {end}; ++{counter})"):
                c.lines(iteration)
            c.line(f"if ((budget -= {chunk * step}) < 0) {{ {poll} }}")
        return
    head = f"for (int64_t {counter} = 0; {counter} < {trips}; ++{counter})" if trips is not None else "for (;;)"
    with c.block(head):
        c.lines(iteration)
        if polls:
            c.line(f"if ((budget -= {step}) < 0) {{ {poll} }}")


def assign_parallel(c: CWriter, pairs: Sequence[tuple[str, str]]) -> None:
    """Emit parallel assignments: a value that reads a variable about to change is saved first."""
    changing = {old for old, _ in pairs}
    saved = []
    for old, new in pairs:
        if new in changing and new != old:
            name = c.name("y")
            c.line(f"const __typeof__({new}) {name} = {new};")
            saved.append((old, name))
        else:
            saved.append((old, new))
    c.lines([f"{old} = {new};" for old, new in saved if old != new])


def update_chain(body: Computation, number: int) -> list[Instruction] | None:
    """Return the dynamic-update-slices that turn a leaf of a body's parameter into the same leaf of its result."""
    (target,) = own_leaves(body.parameters[0])[number : number + 1]
    value = leaves(body.root)[number]
    chain: list[Instruction] = []
    while value.instruction.opcode == "dynamic-update-slice":
        chain.append(value.instruction)
        value = resolve(value.instruction.operands[0])
    return chain[::-1] if chain and value == target else None


def _partition(computation: Computation) -> tuple[list[Instruction], list[Instruction]]:
    """Partition a computation into instructions emitted as expressions, and those emitted as statements in order."""
    expressions: list[Instruction] = []
    statements: list[Instruction] = []
    for ins in computation.post_order():
        if ins.has_side_effect or ins.shape.is_dynamic:
            raise UnsuitableLoopError(f"{ins.opcode} has effects or dynamic sizes")
        if ins.opcode in _WITHOUT_CODE or is_forwarding(ins):
            continue
        if ins.opcode in _STATEMENTS:
            statements.append(ins)
        elif is_loopable(ins):
            expressions.append(ins)
        else:
            raise UnsuitableLoopError(f"{ins.opcode} has a kernel of its own")
    return expressions, statements


def _coordinates(ins: Instruction, element: int) -> list[Affine]:
    return [Affine(int(c)) for c in np.unravel_index(element, ins.shape.dims)]


# ------------------------------------------------------------------------------------------------- statements
def _while(scope: Scope, ins: Instruction) -> list[ArraySource]:
    return scope.loop(ins)


def _conditional(scope: Scope, ins: Instruction) -> list[ArraySource]:
    c, own = scope.c, own_leaves(ins)
    if any(v.shape.size > MAX_ELEMENTS for v in own):
        raise UnsuitableLoopError("a conditional with large results")
    (selector,) = scope.elements(resolve(ins.operands[0]))
    arguments = [[scope.source(v) for v in leaves(o)] for o in ins.operands[1:]]
    results = [[c.name("x") for _ in range(v.shape.size)] for v in own]
    for value, names in zip(own, results, strict=True):
        c.lines([f"{scalar.register_type(value.shape.dtype)} {name};" for name in names])
    is_predicate = ins.operands[0].shape.dtype is ElementType.PRED
    longest = 0.0
    with c.block(f"switch ({selector} == 0)" if is_predicate else f"switch ({selector})"):
        for k, branch in enumerate(ins.called):
            last = k == len(ins.called) - 1
            with c.block("default:" if last else f"case {k}:"):
                inner = Scope.of(scope.kernel_state, branch, arguments[k])
                inner.run()
                branch_results = [inner.elements(v) for v in leaves(branch.root)]
                scope.include(inner)
                for names, texts in zip(results, branch_results, strict=True):
                    c.lines([f"{x} = {y};" for x, y in zip(names, texts, strict=True)])
                c.line("break;")
                longest = max(longest, inner.cost)
    scope.cost += longest
    return list(results)


def _reduce(scope: Scope, ins: Instruction) -> list[ArraySource]:
    count = len(ins.operands) // 2
    arrays, starts = ins.operands[:count], ins.operands[count:]
    if arrays[0].shape.size > MAX_ELEMENTS:
        raise UnsuitableLoopError(f"a reduction of {arrays[0].shape.size} elements")
    if (reason := scalar_computation.unsupported_reason(ins.called[0])) is not None:
        raise UnsuitableLoopError(reason)
    numbers = np.arange(arrays[0].shape.size).reshape(arrays[0].shape.dims)
    reduced = tuple(ins.attrs["dimensions"])
    remaining = [d for d in range(numbers.ndim) if d not in reduced]
    out = [arrays[0].shape.dims[d] for d in remaining]
    rows = numbers.transpose([*remaining, *reduced]).reshape(int(np.prod(out, dtype=int)), -1)
    arguments = [scope.elements(resolve(a)) for a in arrays]
    inits = [scope.elements(resolve(s))[0] for s in starts]
    results: list[list[str]] = [[] for _ in range(count)]
    for row in rows:
        sums = list(inits)
        for e in row:
            sums = scalar_computation.inline(ins.called[0], [*sums, *(a[e] for a in arguments)], scope.c)
        for elements, result in zip(results, sums, strict=True):
            elements.append(result)
    scope.cost += rows.size * DEPENDENT_OP_NS
    return list(results)


def _dot(scope: Scope, ins: Instruction) -> list[ArraySource]:
    lhs, rhs = ins.operands
    dtype = ins.shape.dtype
    if (
        {lhs.shape.dtype, rhs.shape.dtype} != {dtype}
        or scalar.is_narrow(dtype)
        or not (dtype.is_float or dtype.is_integer)
    ):
        raise UnsuitableLoopError(f"dot of {lhs.shape.dtype} to {dtype}")
    if max(lhs.shape.size, rhs.shape.size, ins.shape.size) > MAX_ELEMENTS:
        raise UnsuitableLoopError("a large dot")
    a, b = scope.elements(resolve(lhs)), scope.elements(resolve(rhs))
    left = _matrices(ins, lhs, "lhs", outer_last=False)
    right = _matrices(ins, rhs, "rhs", outer_last=True)
    c, c_type, elements = scope.c, scalar.register_type(dtype), []
    for batch in range(left.shape[0]):
        for row in left[batch]:
            for column in right[batch].T:
                total = scalar.literal(dtype, dtype.numpy_dtype.type(0))  # type: ignore[union-attr]
                for i, j in zip(row, column, strict=True):
                    total = c.local(c_type, _multiply_add(c, dtype, a[i], b[j], total))
                elements.append(total)
    scope.cost += left.size * right.shape[2] * DEPENDENT_OP_NS
    return [elements]


def _multiply_add(c: CWriter, dtype: ElementType, x: str, y: str, total: str) -> str:
    """Return the C of ``total + x * y``; floats are rounded once (FMA), as in the micro-kernels of larger dots."""
    if dtype.is_float:
        return f"CYX_FMA_{str(dtype).upper()}({x}, {y}, {total})"
    types = [dtype, dtype]
    product = c.local(scalar.register_type(dtype), scalar.expression("multiply", dtype, types, {}, [x, y]))
    return scalar.expression("add", dtype, types, {}, [total, product])


def _matrices(ins: Instruction, operand: Instruction, side: str, *, outer_last: bool) -> np.ndarray:
    """Return the element indices of an operand as [batch, outer, contracted], or with the last two swapped."""
    numbers = np.arange(operand.shape.size).reshape(operand.shape.dims)
    batch = list(ins.attrs.get(f"{side}_batch_dims") or ())
    inner = list(ins.attrs.get(f"{side}_contracting_dims") or ())
    outer = [d for d in range(operand.shape.rank) if d not in (*batch, *inner)]
    sizes = [int(np.prod([operand.shape.dims[d] for d in group], dtype=int)) for group in (batch, outer, inner)]
    matrices = numbers.transpose([*batch, *outer, *inner]).reshape(sizes)
    return matrices.transpose(0, 2, 1) if outer_last else matrices


def _update(scope: Scope, ins: Instruction) -> list[ArraySource]:
    """Emit a dynamic-update-slice of a small array of locals."""
    operand, new, *_ = ins.operands
    value, source = resolve(new), resolve(operand)
    old, parts = scope.elements(source), scope.elements(value)
    starts = scope.starts(ins)
    result = []
    for e in range(len(old)):
        node = scope.node(source, e)
        for part in range(len(parts)):
            coordinates = zip(_coordinates(operand, e), _coordinates(new, part), starts, strict=True)
            conditions = tuple(
                Condition(s, h.constant - p.constant, h.constant - p.constant) for h, p, s in coordinates
            )
            if any(c.decided is False for c in conditions):
                continue
            element = scope.node(value, part)
            undecided = tuple(c for c in conditions if c.decided is None)
            node = scope.body.guard(undecided, element, node) if undecided else element
        result += scope.texts([node])
    return [result]


_STATEMENTS: dict[str, Callable[[Scope, Instruction], list[ArraySource]]] = {
    "while": _while, "conditional": _conditional, "reduce": _reduce, "dot": _dot, "dynamic-update-slice": _update,
}  # fmt: skip
