"""C of one computation inside a nest: its statements in order, loops and branches included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.cpu.kernel.carried_products import barrier_if, loop_carries_product
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import leaves, own_leaves, resolve
from cyxla.xla.cpu.loops.hoisting import reachable
from cyxla.xla.cpu.loops.index_map import Affine, Index
from cyxla.xla.cpu.loops.nodes import External, Node
from cyxla.xla.cpu.loops.straight_line import SHORT_NS, UnsuitableLoopError, assign_parallel, write_loop
from cyxla.xla.cpu.nests.lines import NestLines
from cyxla.xla.cpu.nests.memory import Array, NestState
from cyxla.xla.cpu.nests.scope_plan import ScopePlan, Statement, StatementKind
from cyxla.xla.cpu.nests.space import NestBody, NestSpace
from cyxla.xla.cpu.nests.statements import MAX_NODES, StatementWriter
from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.simplify.index_ranges import IndexRanges, counters_of
from cyxla.xla.passes.simplify.trip_count import known_trip_count

POLL_EVERY = machine.POLL_NS  # ns of estimated work between two checks for cancellation
_SCALAR_NS = 0.7  # time of an operation in a chain of scalars
_MAX_NS = 1e12  # bound on any estimate
_ASSUMED_TRIP_COUNT = 1000  # of loops without a known trip count
_UNBOUNDED_TRIP_COUNT = 2**40  # hours of the shortest iterations: the range is the one of a counter's type, or nearly

#: Place of a value: the C of a scalar, or the array that holds it.
Source: TypeAlias = "str | Array"


class Known(Mapping[Value, Callable[[Index], Node]]):
    """Values of a scope, as functions that lower reads of them in one body."""

    def __init__(self, scope: Scope, body: NestBody) -> None:
        self.scope, self.body = scope, body

    def __contains__(self, value: object) -> bool:
        return value in self.scope.sources

    def __getitem__(self, value: Value) -> Callable[[Index], Node]:
        return partial(self.read, value)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.scope.sources)

    def __len__(self) -> int:
        return len(self.scope.sources)

    def read(self, value: Value, index: Index) -> Node:
        """Return the node of an element of a value."""
        source = self.scope.sources[value]
        if isinstance(source, str):
            return self.body.external(value.shape.dtype, value)
        return self.body.load(value.shape.dtype, self.scope.state.slot_of(source, value), index.linear)


class Scope:
    """Computation that is written as a block of C.

    Parameters
    ----------
    state : NestState
        State of the nest.
    plan : ScopePlan
        Plan of the computation.
    sources : dict of Value to (str or Array)
        Places of its parameters.
    owned : set of Value
        Parameters whose arrays may be overwritten.
    ranges : IndexRanges
        Ranges of scalars.
    """

    def __init__(
        self, state: NestState, plan: ScopePlan, sources: dict[Value, Source], owned: set[Value], ranges: IndexRanges
    ) -> None:
        self.state, self.plan, self.sources, self.owned, self.ranges = state, plan, dict(sources), set(owned), ranges
        self.instructions = {v.instruction for v in sources}
        self.pending = _pending(plan)
        self.cost = 0.0
        self.bodies: list[NestBody] = []
        self.body = self.make_body(NestSpace(()))
        self.nest = NestLines(self.body, [], state.names.child(), state.pointers)
        self.nest.tables = state.tables
        self.c: CWriter = self.nest.writers[0]
        self.writer = StatementWriter(state, self.c, self.make_body, self.text, self.bodies)
        self.counted = 0

    def make_body(self, space: NestSpace) -> NestBody:
        """Return the body of a statement, which knows the values of this scope."""
        body = NestBody(space, self.plan.fused, self.state.reads, {}, self.ranges)
        body.know(Known(self, body), self.instructions)
        return body

    def text(self, value: Value) -> str:
        """Return the C of a scalar."""
        return self.scalar(value)

    def scalar(self, value: Value) -> str:
        """Return the C of a scalar, which is loaded if it is in memory."""
        source = self.sources.get(value)
        if isinstance(source, str):
            return source
        index = self.body.space.index_at(value.shape.dims, Affine(0))
        if source is not None:
            node = Known(self, self.body).read(value, index)
        else:
            node = self.body.value(value.instruction, index)
        return self._write(node)

    def _write(self, node: Node) -> str:
        nodes = reachable([node])[0]
        for n in nodes:
            if isinstance(n, External):
                self.nest.set_external(n, self.sources[n.key], 0)  # type: ignore[index, arg-type]
        self.nest.write(nodes)
        self.state.count(len(self.body.nodes) - self.counted, MAX_NODES)
        self.counted = len(self.body.nodes)
        return self.nest.text(node)

    # ------------------------------------------------------------------------------------------------ statements
    def run(self) -> None:
        """Write all statements."""
        for statement in self.plan.statements:
            _EMITTERS[statement.kind](self, statement)
            for value in statement.reads:
                self.pending[value] -= 1
        self.cost += len(self.body.nodes) * _SCALAR_NS

    def define(self, value: Value, source: Source, *, owned: bool = True) -> None:
        """Note the place of a value, and whether it may be overwritten."""
        self.sources[value] = source
        self.instructions.add(value.instruction)
        if owned:
            self.owned.add(value)

    def array(self, value: Value) -> Array:
        """Return the array that holds a value; scalars and constants are stored first."""
        source = self.sources.get(value)
        if isinstance(source, Array):
            return source
        if value.instruction.opcode == "constant" and value.shape.size > 1:
            slot = self.state.reads.slot(value)
            return Array(f"p{slot}", value.shape.dtype, value.shape.size)
        raise UnsuitableLoopError(f"{value.instruction.opcode} is read before it is computed")

    def is_free(self, value: Value, statement: Statement) -> bool:
        """Return whether a statement may overwrite the array of a value: nothing else reads it."""
        others = self.pending.get(value, 0) - (value in statement.reads)
        return value in self.owned and not others and value not in self.plan.results

    def take(self, value: Value, statement: Statement, *, shared: bool = False) -> Array:
        """Return an array with the elements of a value that a statement may overwrite, a copy if it has to be."""
        if shared or not self.is_free(value, statement):
            return self.copy_of(self.array(value))
        return self._given_up(value)

    def _given_up(self, value: Value) -> Array:
        """Return the array of a value for another one, which alone may be overwritten from now on."""
        self.owned.discard(value)
        return self.array(value)

    def copy_of(self, array: Array) -> Array:
        """Return a copy of an array."""
        copy = self.state.new_array(array.dtype, array.size)
        self.copy(copy, array)
        return copy

    def copy(self, target: Array, source: Array) -> None:
        """Copy an array."""
        if target is not source:
            if target.nbytes > self.state.most_copied:
                raise UnsuitableLoopError("a copy of an array of which a part alone matters")
            self.c.line(f"__builtin_memcpy({target.pointer}, {source.pointer}, {target.nbytes});")
            self.cost += target.nbytes * machine.CACHED_NS_PER_BYTE

    def compute_scalar(self, statement: Statement) -> None:
        """Compute a scalar, or a dynamic-update-slice of one element."""
        ins = statement.ins
        (value,) = own_leaves(ins)
        if ins.opcode == "dynamic-update-slice":
            self.define(value, self.scalar(resolve(ins.operands[1])))
            return
        self.define(value, self.scalar(value))

    def fill(self, statement: Statement) -> None:
        """Compute an array, over an old one if the plan says so."""
        value = Value(statement.ins)
        old = statement.inherits.get(value)
        if old is None or not self.is_free(old, statement):
            target = self.state.new_array(value.shape.dtype, value.shape.size)
        else:
            target = self._given_up(old)
        self.cost += self.writer.fill(statement.ins, target)
        self.define(value, target)

    def update(self, statement: Statement) -> None:
        """Update an array in place."""
        value = Value(statement.ins)
        old = statement.inherits[value]
        source = self.array(old)
        target = self.take(old, statement)
        self.sources[old] = target  # while this statement reads it
        self.cost += self.writer.update(statement.ins, target)
        self.sources[old] = source
        self.define(value, target)

    def reduce(self, statement: Statement) -> None:
        """Compute a reduction or a product."""
        ins = statement.ins
        values = own_leaves(ins)
        targets: list[Array | str] = []
        for value in values:
            if value.shape.size == 1:
                name = self.c.name("x")
                self.c.line(f"{scalar.register_type(value.shape.dtype)} {name};")
                targets.append(name)
            else:
                targets.append(self.state.new_array(value.shape.dtype, value.shape.size))
        write = self.writer.dot if ins.opcode == "dot" else self.writer.reduce
        self.cost += write(ins, targets)
        for value, target in zip(values, targets, strict=True):
            self.define(value, target)

    # ------------------------------------------------------------------------------------------------ loops
    def loop(self, statement: Statement) -> None:
        """Write a loop."""
        ins = statement.ins
        body, condition = self.plan.nested[ins]
        own, initial = own_leaves(ins), leaves(ins.operands[0])
        state: list[Source] = []
        owned: set[Value] = set()
        for n, value in enumerate(initial):
            parameter, changes = body.parameters[n], body.parameters[n] != body.results[n]
            if value.shape.size == 1:
                text = self.scalar(value)
                state.append(self._variable(value.shape.dtype, text) if changes else text)
            elif changes:
                state.append(self.take(value, statement, shared=initial.count(value) > 1))
                owned.add(parameter)
            else:
                state.append(self.array(value))
        self.write_loop(ins, body, condition, state, owned)
        for n, (value, source) in enumerate(zip(own, state, strict=True)):
            self.define(value, source, owned=body.parameters[n] in owned)

    def _variable(self, dtype: ElementType, value: str) -> str:
        name = self.c.name("x")
        self.c.line(f"{scalar.register_type(dtype)} {name} = {value};")
        return name

    def write_loop(
        self, ins: Instruction, body: ScopePlan, condition: ScopePlan, state: list[Source], owned: set[Value]
    ) -> None:
        """Write a loop over a state; its parameters in `owned` may be overwritten."""
        trips = known_trip_count(ins)
        outer, self.c = self.c, self.c.child()
        self.c.lines(barrier_if(loop_carries_product(body.computation)))
        ns = 0.0
        if trips is None:
            test = self._nested(condition, state, set())
            test.run()
            result = test.scalar(test.plan.results[0])
            self._include(test)
            self.c.line(f"if (!{result}) break;")
            ns += test.cost
        ns += self._iteration(body, state, owned)
        iteration, self.c = self.c.written, outer
        most = trips if trips is not None else self._most_trips(ins)
        polls = most is None or most * ns > SHORT_NS
        write_loop(self.c, trips, iteration, ns, polls=polls)
        assumed = trips if trips is not None else _ASSUMED_TRIP_COUNT if most is None else -(-most // 2)
        self.cost += min(ns, _MAX_NS) * assumed

    def _most_trips(self, ins: Instruction) -> int | None:
        """Return the greatest trip count that the range of a counter permits; None if only its type bounds it."""
        parameter = ins.called[0].parameters[0]
        found = []
        for counter in counters_of(ins, self.ranges.of):
            inside = self.ranges.element(parameter, counter.number)
            if inside is not None:
                found.append((inside[1] - inside[0]) // abs(counter.step) + 1)
        most = min(found, default=_UNBOUNDED_TRIP_COUNT)
        return most if most < _UNBOUNDED_TRIP_COUNT else None

    def _nested(self, plan: ScopePlan, sources: Sequence[Source], owned: set[Value]) -> Scope:
        places = dict(zip(plan.parameters, sources, strict=True))
        return Scope(self.state, plan, places, owned, self.ranges)

    def _iteration(self, body: ScopePlan, state: list[Source], owned: set[Value]) -> float:
        scope = self._nested(body, state, owned)
        scope.run()
        scalars: list[tuple[str, str]] = []
        arrays: list[tuple[Array, Array]] = []
        for n, (before, after) in enumerate(zip(body.parameters, body.results, strict=True)):
            place = state[n]
            if before == after:
                continue
            if isinstance(place, str):
                scalars.append((place, scope.scalar(after)))
            else:
                arrays.append((place, scope.array(after)))
        _copy_arrays(scope, arrays)
        self._include(scope)
        assign_parallel(self.c, scalars)
        return scope.cost

    def _include(self, scope: Scope) -> None:
        self.c.lines(scope.c.written)
        self.bodies += [scope.body, *scope.bodies]

    # ------------------------------------------------------------------------------------------------ branches
    def conditional(self, statement: Statement) -> None:
        """Write a branch."""
        ins = statement.ins
        plans, own = self.plan.nested[ins], own_leaves(ins)
        selector = self.scalar(resolve(ins.operands[0]))
        operands = [leaves(o) for o in ins.operands[1:]]
        results: list[Source] = []
        taken: dict[Value, Array] = {}
        for value in own:
            old = statement.inherits.get(value)
            if value.shape.size == 1:
                name = self.c.name("x")
                self.c.line(f"{scalar.register_type(value.shape.dtype)} {name};")
                results.append(name)
            elif old is not None:
                shared = any(o.count(old) > 1 for o in operands)
                results.append(taken.setdefault(old, self.take(old, statement, shared=shared)))
            else:
                results.append(self.state.new_array(value.shape.dtype, value.shape.size))
        arguments: list[list[Source]] = []
        owned: set[Value] = set()
        for plan, values in zip(plans, operands, strict=True):
            origins = {plan.origin(plan.results[k]) for k, v in enumerate(own) if v in statement.inherits}
            owned |= origins
            arguments.append(
                [
                    self.scalar(v) if v.shape.size == 1 else taken[v] if p in origins else self.array(v)
                    for p, v in zip(plan.parameters, values, strict=True)
                ]
            )
        self._switch(ins, plans, selector, arguments, results, owned)
        for value, result in zip(own, results, strict=True):
            self.define(value, result)

    def _switch(
        self, ins: Instruction, plans: Sequence[ScopePlan], selector: str, arguments: Sequence[Sequence[Source]],
        results: Sequence[Source], owned: set[Value],
    ) -> None:  # fmt: skip
        is_predicate = ins.operands[0].shape.dtype is ElementType.PRED
        longest = 0.0
        with self.c.block(f"switch ({selector} == 0)" if is_predicate else f"switch ({selector})"):
            for k, plan in enumerate(plans):
                with self.c.block("default:" if k == len(plans) - 1 else f"case {k}:"):
                    scope = self._nested(plan, arguments[k], owned)
                    scope.run()
                    pairs: list[tuple[str, str]] = []
                    arrays: list[tuple[Array, Array]] = []
                    for place, result in zip(results, plan.results, strict=True):
                        if isinstance(place, str):
                            pairs.append((place, scope.scalar(result)))
                        else:
                            arrays.append((place, scope.array(result)))
                    _copy_arrays(scope, arrays)
                    self._include(scope)
                    self.c.lines([f"{x} = {y};" for x, y in pairs])
                    self.c.line("break;")
                    longest = max(longest, scope.cost)
        self.cost += longest


def _pending(plan: ScopePlan) -> dict[Value, int]:
    """Return the number of statements that read each value."""
    pending: dict[Value, int] = {}
    for statement in plan.statements:
        for value in statement.reads:
            pending[value] = pending.get(value, 0) + 1
        for value in statement.inherits.values():
            pending.setdefault(value, 0)
    return pending


def _copy_arrays(scope: Scope, pairs: Sequence[tuple[Array, Array]]) -> None:
    """Copy arrays to others at once."""
    needed = [(target, source) for target, source in pairs if target is not source]
    targets = [target for target, _ in needed]
    saved = [(target, scope.copy_of(source) if source in targets else source) for target, source in needed]
    for target, source in saved:
        scope.copy(target, source)


_EMITTERS: dict[StatementKind, Callable[[Scope, Statement], None]] = {
    StatementKind.SCALAR: Scope.compute_scalar, StatementKind.FILL: Scope.fill, StatementKind.UPDATE: Scope.update,
    StatementKind.REDUCE: Scope.reduce, StatementKind.DOT: Scope.reduce, StatementKind.WHILE: Scope.loop,
    StatementKind.CONDITIONAL: Scope.conditional,
}  # fmt: skip
