"""Engine of rewriting passes: declared rules, applied until none matches any more.

A rule is a pattern, its replacement and a condition::

    RULES = [
        rule(x * 1,     x,  when=real),
        rule(x + 0,     x,  exact=False),       # -0.0 + 0 is 0.0
        rule(x - x,     0,  when=integral),     # inf - inf is nan
    ]
    algebra = RewritePass("algebra", RULES)

Rules are selected by the opcodes of an instruction and of its first operands; commutative operands match in either
order. The computation's change log holds the instructions to match again. Instructions that a rewrite leaves without
users are removed at once. Instructions with control dependencies or dynamic sizes are not rewritten.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from cyxla.errors import ShapeError
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.observer import replace
from cyxla.xla.passes.engine.pattern import Const, Match, Op, Pattern
from cyxla.xla.passes.engine.pipeline import HloModulePass

MAX_VISITS: Final = 50  # rewrites in a row that descend from one instruction
FAN_OUT: Final = 16  # number of users up to which those of a changed instruction are matched again
DEPTH: Final = 2  # levels of users that a change may affect: the depth of the deepest pattern
SIGNATURE: Final = 3  # operands whose opcodes select the rules

Replacement: TypeAlias = "Pattern | Callable[[Match], Instruction | None]"
log = logging.getLogger(__name__)


class Rule:
    """Rewriting rule.

    Attributes
    ----------
    pattern : Op
        Left side.
    becomes : Pattern or callable
        Right side; a callable returns the new instruction, or None to rewrite nothing.
    exact : bool
        True if the result has the same bits for every input, NaN, infinities and -0.0 included.
    when : callable or None
        Condition besides the pattern.
    ulp : int
        Difference that the opcode's own tolerance allows, in units in the last place; 0 for none.
    """

    def __init__(
        self,
        pattern: Op,
        becomes: Replacement,
        *,
        when: Callable[[Match], bool] | None = None,
        exact: bool = True,
        ulp: int = 0,
    ) -> None:
        self.pattern, self.becomes, self.when, self.exact, self.ulp = pattern, becomes, when, exact, ulp
        self.forms = [form for form in pattern.orders() if isinstance(form, Op)]

    def apply(self, form: Op, ins: Instruction) -> Instruction | None:
        """Build the replacement of an instruction by one form of the pattern; None if it does not match."""
        bound: dict[str, Any] = {}
        if not form.match(ins, bound):
            return None
        m = Match(ins, bound)
        if self.when is not None and not self.when(m):
            return None
        if not isinstance(self.becomes, Pattern):
            return self.becomes(m)
        return self.becomes.build(m, ins.computation, ins.shape.logical)

    def __str__(self) -> str:
        if isinstance(self.becomes, Pattern):
            return f"{self.pattern} -> {self.becomes}"
        words = (self.becomes.__doc__ or self.becomes.__name__.strip("_")).split("\n")[0]
        return f"{self.pattern}: {words.strip().rstrip('.')}"


def rule(
    pattern: Op,
    becomes: Replacement | float,
    *,
    when: Callable[[Match], bool] | None = None,
    exact: bool = True,
    ulp: int = 0,
) -> Rule:
    """Return a rule; a number on the right side is an array of it."""
    right: Any = Const(becomes) if isinstance(becomes, int | float) else becomes
    return Rule(pattern, right, when=when, exact=exact, ulp=ulp)


def any_of(opcodes: Iterable[str], becomes: Callable[[Match], Instruction | None], **facts: Any) -> list[Rule]:
    """Return a rule for each opcode, for rewrites of any number of operands: the pattern names none."""
    return [Rule(_AnyOperands(o, (), {}), becomes, **facts) for o in opcodes]


class _AnyOperands(Op):
    """Opcode with any operands."""

    def match(self, ins: Instruction, bound: dict[str, Any]) -> bool:
        return ins.opcode == self.opcode

    def orders(self) -> Any:
        yield self

    def __str__(self) -> str:
        return f"{self.opcode}(..)"


_Form: TypeAlias = tuple[Rule, Op]


class RewritePass(HloModulePass):
    """Pass that applies rules everywhere until none matches.

    Parameters
    ----------
    name : str
        Name of the pass.
    rules : sequence of Rule
        Rules in the order in which they are tried.
    exact : bool
        True to leave out rules that may change bits.
    """

    def __init__(self, name: str, rules: Sequence[Rule], *, exact: bool = True) -> None:
        super().__init__(name)
        self.rules = [r for r in rules if r.exact or not exact]
        self._by_root: dict[str, list[_Form]] = {}
        for r in self.rules:
            self._by_root.setdefault(r.pattern.opcode, []).extend((r, form) for form in r.forms)
        self.roots = frozenset(self._by_root)
        self._by_signature: dict[tuple[str, ...], tuple[_Form, ...]] = {}

    def run(self, module: HloModule) -> bool:
        """Rewrite every computation that the entry reaches."""
        changed = False
        for computation in module.post_order():
            changed |= self.run_computation(computation)
        return changed

    def run_computation(self, computation: Computation, since: int | None = None) -> bool:
        """Rewrite one computation; with `since`, around the instructions of its change log from that entry on."""
        return _Run(self, computation).run(since)

    def forms(self, ins: Instruction) -> tuple[_Form, ...]:
        """Return the rules that may match an instruction, by opcodes."""
        key = (ins.opcode, *[o.opcode for o in ins.operands[:SIGNATURE]])
        fitting = self._by_signature.get(key)
        if fitting is None:
            forms = self._by_root.get(ins.opcode, ())
            fitting = self._by_signature[key] = tuple(f for f in forms if _may_fit(f[1], key[1:]))
        return fitting


class Again(HloModulePass):
    """Pass of rules inside a loop of passes: every run but the first matches only around changes since the one before.

    Parameters
    ----------
    rules : RewritePass
        Rules to apply. The change logs of the computations must not be cleared in between.
    """

    def __init__(self, rules: RewritePass) -> None:
        super().__init__(rules.name)
        self.rules = rules
        self._read: dict[Computation, int] = {}

    def run(self, module: HloModule) -> bool:
        """Apply the rules around changed instructions."""
        changed = False
        for computation in module.post_order():
            read = self._read.get(computation)
            if read != len(computation.changed):
                changed |= self.rules.run_computation(computation, read)
                self._read[computation] = len(computation.changed)
        return changed


def _may_fit(form: Op, opcodes: tuple[str, ...]) -> bool:
    accepted = [p.opcodes() for p in form.operands[:SIGNATURE]]
    return all(a is None or o in a for a, o in zip(accepted, opcodes, strict=False))


class _Run:
    """Rewriting of one computation to its fixpoint."""

    def __init__(self, rules: RewritePass, computation: Computation) -> None:
        self.rules, self.computation = rules, computation
        self.members = computation.instructions
        self.log, self.read = computation.changed, len(computation.changed)  # earlier entries are of others
        self.pinned = _ordered_by_control(computation)
        self.work: deque[Instruction] = deque()
        self.waiting: set[Instruction] = set()
        self.instructions = set(computation.instructions)
        self.history: dict[Instruction, tuple[int, Rule, Rule]] = {}  # rewrites so far, the last two rules

    def run(self, since: int | None) -> bool:
        changed = False
        if since is None:
            self.work.extend(i for i in self.members if i.opcode in self.rules.roots)
            self.waiting.update(self.work)
        else:
            self._push(dict.fromkeys(self.log[since:]))
        while self.work:
            ins = self.work.popleft()
            self.waiting.discard(ins)
            if ins not in self.members or ins in self.pinned:
                continue
            forms = self.rules.forms(ins)
            if not forms or ins.shape.is_dynamic or any(o.shape.is_dynamic for o in ins.operands):
                continue
            found = self._rewrite(ins, forms)
            if found is None:
                continue
            changed = True
            if not self._record(ins, *found):
                break
        return changed

    def _rewrite(self, ins: Instruction, forms: tuple[_Form, ...]) -> tuple[Rule, Instruction] | None:
        """Apply the first rule that matches; return it with the new instruction."""
        for rule, form in forms:
            new = rule.apply(form, ins)
            if new is None or new is ins:
                self._forget()
                continue
            if not new.shape.compatible(ins.shape):
                raise ShapeError(f"rule {rule} turns {ins.shape} into {new.shape}", where=repr(ins))
            if _layout_matters(ins, new):
                self._forget()
                continue
            replace(ins, new, rule)
            return rule, new
        return None

    def _record(self, ins: Instruction, r: Rule, new: Instruction) -> bool:
        """Record a rewrite and queue the instructions it touched; return False if two rules undo each other."""
        count, last, _ = self.history.pop(ins, (0, r, r))
        for instruction in (new, *self.log[self.read :]):  # new instructions descend from the replaced one
            if instruction is new or instruction not in self.instructions:
                self.history[instruction] = max(
                    (count + 1, r, last), self.history.get(instruction, (0, r, r)), key=lambda h: h[0]
                )
                self.instructions.add(instruction)
        if count + 1 >= MAX_VISITS:
            log.warning("%s: the rules [%s] and [%s] undo each other at %r", self.rules.name, r, last, new)
            return False
        self._sweep([ins])
        self._push(dict.fromkeys(self.log[self.read :]))
        self.read = len(self.log)
        return True

    def _forget(self) -> None:
        """Remove the instructions of a rule that was not applied in the end."""
        if len(self.log) > self.read:
            self._sweep(self.log[self.read :])
            self.read = len(self.log)

    def _sweep(self, candidates: Iterable[Instruction]) -> None:
        """Remove instructions without users, and their operands that have no other users."""
        stack = list(candidates)
        while stack:
            ins = stack.pop()
            if ins.users or ins not in self.members or not self._removable(ins):
                continue
            self.computation.remove(ins)
            self.history.pop(ins, None)
            stack.extend(ins.operands)

    def _removable(self, ins: Instruction) -> bool:
        return not (ins.opcode == "parameter" or ins.is_root or ins in self.pinned or ins.has_side_effect)

    def _push(self, instructions: Iterable[Instruction]) -> None:
        """Queue instructions and the users that a change of them may affect."""
        level = list(instructions)
        for _ in range(DEPTH + 1):
            nearby: list[Instruction] = []
            for ins in level:
                if ins.opcode in self.rules.roots and ins not in self.waiting and ins in self.members:
                    self.waiting.add(ins)
                    self.work.append(ins)
                if len(ins.users) <= FAN_OUT:
                    nearby.extend(ins.users)
            level = [i for i in nearby if i not in self.waiting]


def _ordered_by_control(computation: Computation) -> set[Instruction]:
    """Return the instructions with control dependencies, on either side."""
    ordered: set[Instruction] = set()
    for ins in computation.instructions:
        if ins.control_predecessors:
            ordered.update(ins.control_predecessors)
            ordered.add(ins)
    return ordered


def _layout_matters(ins: Instruction, new: Instruction) -> bool:
    """Return whether a bitcast reads the memory of an instruction, and the new one has another layout."""
    if ins.shape is new.shape or not any(u.opcode == "bitcast" for u in ins.users):
        return False
    return ins.shape.is_array and ins.shape.minor_to_major != new.shape.minor_to_major
