"""Plan of a computation inside a nest: its statements in order, and the arrays that they overwrite.

A statement computes a scalar, fills an array, updates one in place, or is a loop or a branch. Element-wise arrays that
are cheap or read once are no statements: their readers compute them.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import field
from enum import StrEnum

from cyxla.records import dataclass
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.groups import is_loopable
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import CONTROL_FLOW, is_forwarding, leaves, own_leaves, resolve
from cyxla.xla.cpu.loops.straight_line import UnsuitableLoopError
from cyxla.xla.hlo import Computation, Instruction

MAX_INSTRUCTIONS = 1500  # in one computation
_MAX_INLINED = 60  # operations per element that one statement computes
_LOOPED = 1000  # operations per element of a statement with a loop of its own
_MAX_TOTAL = 20_000  # operations per element, above which even such a statement fills an array first
_MAX_REPEATED = 4 * cost.CHEAP_FLOPS  # operations per element that several readers may each compute
_WITHOUT_CODE = frozenset({"parameter", "constant"})
_REDUCTIONS = frozenset({"reduce", "dot"})
_PLACING = frozenset({"dynamic-update-slice", "pad", "concatenate"})  # larger results with each element once


class StatementKind(StrEnum):
    """Kinds of statements."""

    SCALAR = "scalar"
    FILL = "fill"
    UPDATE = "update"
    REDUCE = "reduce"
    DOT = "dot"
    WHILE = "while"
    CONDITIONAL = "conditional"


@dataclass(eq=False)
class Statement:
    """Instruction that is computed at one moment.

    Attributes
    ----------
    kind : StatementKind
        Kind.
    ins : Instruction
        Instruction that it computes.
    reads : tuple of Value
        Arrays in memory that it reads.
    inherits : dict of Value to Value
        Results that are written over an array, each with that array.
    """

    kind: StatementKind
    ins: Instruction
    reads: tuple[Value, ...] = ()
    inherits: dict[Value, Value] = field(default_factory=dict)


class ScopePlan:
    """Plan of one computation.

    Attributes
    ----------
    statements : list of Statement
        Statements in order.
    fused : dict of Instruction to int
        Instructions that statements compute element by element, with numbers.
    nested : dict of Instruction to list of ScopePlan
        Plans of the computations of loops and branches.
    results : list of Value
        Leaves of the root.
    """

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.parameters = [v for p in computation.parameters for v in own_leaves(p)]
        self.results = leaves(computation.root)
        self.nested: dict[Instruction, list[ScopePlan]] = {}
        self.fused: dict[Instruction, int] = {}
        self.defined: dict[Value, Statement] = {}  # values of statements
        order = [i for i in _needed(computation) if i.opcode not in _WITHOUT_CODE and not is_forwarding(i)]
        if len(order) > MAX_INSTRUCTIONS:
            raise UnsuitableLoopError(f"more than {MAX_INSTRUCTIONS} instructions")
        self.users: dict[Instruction, list[Instruction]] = {}
        for ins in order:
            for value in _operands(ins):
                self.users.setdefault(value.instruction, []).append(ins)
        self.inlined = self._inlined(order)
        self.fused = {ins: n for n, ins in enumerate(order) if is_loopable(ins)}
        self.statements = self._scheduled([self._statement(i) for i in order if i not in self.inlined])

    # ------------------------------------------------------------------------------------------------ partition
    def _inlined(self, order: list[Instruction]) -> set[Instruction]:
        """Return the element-wise arrays that their readers compute."""
        in_memory = {v.instruction for v in self.results}
        for ins in order:
            if ins.opcode in CONTROL_FLOW:
                in_memory.update(v.instruction for v in _operands(ins))
            elif ins.opcode == "dynamic-update-slice" and ins.shape.size > 1:
                in_memory.add(resolve(ins.operands[0]).instruction)
            elif ins.opcode == "dot" and ins.shape.size > 1:
                in_memory.update(v.instruction for v in _operands(ins))
        inlined: set[Instruction] = set()
        ops: dict[Instruction, int] = {}
        for ins in order:
            _check(ins)
            inner = sum(ops.get(v.instruction, 0) for v in _operands(ins))
            ops[ins] = 0
            if not is_loopable(ins) or ins.shape.size <= 1:
                continue
            total = inner + cost.flops(ins)
            readers = self.users.get(ins, [])
            is_costly = total > _MAX_REPEATED and (len(readers) > 1 or any(_repeats(r, ins) for r in readers))
            if ins in in_memory or is_costly or _MAX_INLINED < total < _LOOPED or total > _MAX_TOTAL:
                continue
            inlined.add(ins)
            ops[ins] = total
        return inlined

    def _statement(self, ins: Instruction) -> Statement:
        statement = Statement(self._kind(ins), ins, self._reads(ins))
        if ins.opcode in CONTROL_FLOW:
            self.nested[ins] = [ScopePlan(c) for c in ins.called]
            statement.inherits = self._inherited(ins)
        elif statement.kind is StatementKind.UPDATE:
            statement.inherits = {Value(ins): resolve(ins.operands[0])}
        elif statement.kind is StatementKind.FILL:
            old = self._overwritten(ins)
            statement.inherits = {} if old is None else {Value(ins): old}
        for value in own_leaves(ins):
            self.defined[value] = statement
        return statement

    def _kind(self, ins: Instruction) -> StatementKind:
        if ins.opcode in CONTROL_FLOW or ins.opcode in _REDUCTIONS:
            return StatementKind(ins.opcode)
        if ins.shape.size <= 1:
            return StatementKind.SCALAR
        return StatementKind.UPDATE if ins.opcode == "dynamic-update-slice" else StatementKind.FILL

    def _overwritten(self, ins: Instruction) -> Value | None:
        """Return the array that a filled array is written over: one of which it keeps elements, or the state's."""
        if ins.opcode == "select":
            for branch in (ins.operands[2], ins.operands[1]):
                old = resolve(branch)
                if (
                    self.is_array_in_memory(old)
                    and old.shape.dims == ins.shape.dims
                    and old.shape.dtype is ins.shape.dtype
                ):
                    return old
        for n, result in enumerate(self.results):
            if result.instruction is ins and len(self.results) == len(self.parameters):
                old = self.parameters[n]
                if old.shape.nbytes == result.shape.nbytes and old not in self.results:
                    return old
        return None

    def _inherited(self, ins: Instruction) -> dict[Value, Value]:
        """Return the results of a loop or branches that are written over arrays of this computation."""
        own, plans = own_leaves(ins), self.nested[ins]
        found: dict[Value, Value] = {}
        if ins.opcode == "while":
            body = plans[0]
            for value, initial, before, after in zip(
                own, leaves(ins.operands[0]), body.parameters, body.results, strict=True
            ):
                is_new = before != after and initial not in found.values()
                if is_new and value.shape.size > 1 and self.is_array_in_memory(initial):
                    found[value] = initial
            return found
        for k, value in enumerate(own):
            sources = {_argument(plan, plan.results[k], ins.operands[1 + b]) for b, plan in enumerate(plans)}
            (source, *others) = sources
            if others or source is None or source in found.values():
                continue
            if value.shape.size > 1 and self.is_array_in_memory(source):
                found[value] = source
        return found

    def is_array_in_memory(self, value: Value) -> bool:
        """Return whether a value is an array in memory, of this computation."""
        return value.shape.size > 1 and (value in self.defined or value in self.parameters)

    def origin(self, value: Value) -> Value:
        """Return the array that a value is written over, through all statements, or itself."""
        while value in self.defined and value in self.defined[value].inherits:
            value = self.defined[value].inherits[value]
        return value

    def _reads(self, ins: Instruction) -> tuple[Value, ...]:
        """Return the values that a statement reads: of other statements, of parameters, and constants."""
        found: dict[Value, None] = {}
        stack, seen = list(_operands(ins)), set()
        while stack:
            value = stack.pop()
            if value.instruction in self.inlined:
                if value.instruction not in seen:
                    seen.add(value.instruction)
                    stack += _operands(value.instruction)
            else:
                found[value] = None
        return tuple(found)

    def _scheduled(self, statements: list[Statement]) -> list[Statement]:
        """Order statements so that arrays are read before they are overwritten, as far as possible."""
        return _Order(statements, self.defined, set(self.results)).run()


class _Order:
    """Order of statements: each after those that it reads, and after the other readers of what it overwrites."""

    def __init__(self, statements: list[Statement], defined: dict[Value, Statement], returned: set[Value]) -> None:
        self.statements, self.returned = statements, returned
        self.readers: dict[Value, set[int]] = {}
        self.missing = [0] * len(statements)
        self.waiting: dict[int, list[int]] = {}
        number = {s: n for n, s in enumerate(statements)}
        for n, s in enumerate(statements):
            before = {number[defined[v]] for v in s.reads if v in defined}
            self.missing[n] = len(before)
            for b in before:
                self.waiting.setdefault(b, []).append(n)
            for v in s.reads:
                self.readers.setdefault(v, set()).add(n)

    def run(self) -> list[Statement]:
        """Return the statements in order."""
        ready = [n for n, count in enumerate(self.missing) if not count]
        order: list[Statement] = []
        while ready:
            n = next((r for r in ready if not self._overwrites(r)), ready[0])
            ready.remove(n)
            order.append(self.statements[n])
            for v in self.statements[n].reads:
                self.readers[v].discard(n)
            for later in self.waiting.get(n, ()):
                self.missing[later] -= 1
                if not self.missing[later]:
                    insort(ready, later)
        return order

    def _overwrites(self, n: int) -> bool:
        """Return whether a statement overwrites an array that others have yet to read."""
        overwritten = self.statements[n].inherits.values()
        return any(self.readers.get(v, set()) - {n} or v in self.returned for v in overwritten)


def _argument(plan: ScopePlan, result: Value, operand: Instruction) -> Value | None:
    """Return the value outside that a result of a branch is written over, or is; None for other results."""
    origin = plan.origin(result)
    if origin not in plan.parameters:
        return None
    return leaves(operand)[plan.parameters.index(origin)]


def _needed(computation: Computation) -> list[Instruction]:
    """Return the instructions that the root depends on, operands first."""
    needed: set[Instruction] = set()
    stack = [computation.root]
    while stack:
        ins = stack.pop()
        if ins not in needed:
            needed.add(ins)
            stack += ins.operands
    return [i for i in computation.post_order() if i in needed]


def _operands(ins: Instruction) -> list[Value]:
    return [v for o in ins.operands for v in leaves(o)]


def _check(ins: Instruction) -> None:
    if ins.has_side_effect or ins.shape.is_dynamic or ins.control_predecessors:
        raise UnsuitableLoopError(f"{ins.opcode} has effects or dynamic sizes")
    known = ins.opcode in CONTROL_FLOW or ins.opcode in _REDUCTIONS or ins.opcode == "dynamic-update-slice"
    if not known and not is_loopable(ins):
        raise UnsuitableLoopError(f"{ins.opcode} has a kernel of its own")
    if any(leaf.size == 0 for leaf in ins.shape.leaves()):
        raise UnsuitableLoopError("an empty array")


def _repeats(reader: Instruction, ins: Instruction) -> bool:
    """Return whether a reader requests elements of an instruction more than once each."""
    if not reader.shape.is_array or reader.opcode in _REDUCTIONS or reader.opcode in _PLACING:
        return False
    return reader.opcode == "gather" or reader.shape.size > ins.shape.size
