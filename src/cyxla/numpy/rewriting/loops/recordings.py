"""One pass over the body of a loop: its state becomes parameters of a trace, and the state after it its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from cyxla.numpy.control.carry import agreed_kind, array_text
from cyxla.numpy.rewriting.loops.plans import Learned, Peel, Plan, Repeat, Unsuitable, Variables, is_shared_array
from cyxla.numpy.rewriting.parts.parts import Leaves, Part, like
from cyxla.numpy.rewriting.parts.sharing import (
    has_other_names,
    may_have_been_written,
    possible_roots,
    refuse_use,
    share,
)
from cyxla.numpy.rewriting.parts.unbound import PossiblyUnbound, Unbound, unbound_flag
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.traced_array import Doubt, TracedArray, as_traced, value_of
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Kind, dtype_of, same_kind
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import require_current, resumed
from cyxla.numpy.tracing.user_program.classes import class_of
from cyxla.numpy.tracing.user_program.doubts import doubt_of, leave
from cyxla.numpy.tracing.user_program.user_frames import HOOKS
from cyxla.records import dataclass
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp

MAX_PERIOD = 6  # iterations that are recorded as one, at most
INDEX = Shape.array(ElementType.S64)


@dataclass(eq=False)
class Slot:
    """Part of a loop's state.

    Attributes
    ----------
    init : TracedArray
        Value before the loop.
    parameter : TracedArray
        Value before an iteration.
    variable, leaf : int
        Variable and its leaf. Both are -1 for an array that is written; the leaf is -2 for whether the variable is
        unbound.
    op : XlaOp, optional
        Value after an iteration.
    before : TracedArray, optional
        Array that the variable has before the loop, which `init` is a value of.
    doubt : Slot, optional
        Part that tells whether a number has another class than the parameter; its own leaf is -3.
    """

    init: TracedArray
    parameter: TracedArray
    variable: int = -1
    leaf: int = -1
    op: XlaOp | None = None
    before: TracedArray | None = None
    doubt: Slot | None = None

    @property
    def kind(self) -> Kind:
        """Type before an iteration."""
        return self.parameter.kind

    @property
    def is_array(self) -> bool:
        """True for an array that a variable has, to which a write is seen by all who have it."""
        return self.variable >= 0 and not self.is_flag and is_shared_array(self.parameter)

    @property
    def is_flag(self) -> bool:
        """True for the part that tells whether a variable is unbound."""
        return self.leaf == _FLAG

    @property
    def is_value(self) -> bool:
        """True for a value, or a part of one."""
        return self.leaf not in (_FLAG, _DOUBT)


_FLAG = -2
_ITERATIONS = "the number of iterations"
_DOUBT = -3


class Recording:
    """Pass over the body of a loop.

    Parameters
    ----------
    variables : Variables
        Variables of the loop.
    plan : Plan
        Plan of the pass, to which it adds.
    entry : tuple
        Values of the variables before the loop.
    can_peel : bool
        Whether an iteration can be run before the loop.
    """

    def __init__(self, variables: Variables, plan: Plan, entry: Sequence[Any], can_peel: bool) -> None:
        self.variables, self.plan, self.entry, self.can_peel = variables, plan, entry, can_peel
        self.slots: list[Slot] = []
        self.flags: list[XlaOp] = []
        inits = self._inits()
        self.part = Part("body")
        self.index = self.part.parameter(INDEX)
        self._builders: dict[int, Leaves] = {}
        self._flags: dict[int, Slot] = {}  # by the variable that may be unbound
        self.state = self._begin(inits)
        self.given = self.state
        self._add_written()
        self._note_sharing()

    # -- before the body

    def _inits(self) -> dict[int, list[TracedArray]]:
        """Return the initial values of the variables that are carried as values, in the enclosing trace."""
        return {k: made for k, v in enumerate(self.entry) if (made := self._inits_of(k, v)) is not None}

    def _inits_of(self, k: int, value: Any) -> list[TracedArray] | None:
        if k in self.variables.exits:
            return None
        self._note_unbound(k, value)
        learned = self.plan.learned.get(k)
        if isinstance(value, Unbound) or k not in self.variables.carried:
            return None if learned is None else self._first_values(k, learned, value)
        leaves = Leaves(value)
        if not leaves.arrays or self._is_object(k, value):
            return None
        return [self._adopted(k, j, a) for j, a in enumerate(leaves.arrays)]

    def _note_unbound(self, k: int, value: Any) -> None:
        """Make it a part of the state whether a variable is unbound, if that depends on the run."""
        if self._is_local(k) and any(isinstance(a, PossiblyUnbound) for a in _arrays(value)):
            self.plan.maybe_unbound.add(k)

    def _is_local(self, k: int) -> bool:
        return not self.variables.names[k].startswith(HOOKS)

    def _value(self, k: int, array: TracedArray) -> XlaOp:
        """Return the value of an array of a variable, without a check that the variable is bound."""
        return array.unchecked_op if self._is_local(k) else array.op

    def _unchecked(self, k: int, array: TracedArray) -> TracedArray:
        """Return an array of a variable, whether the variable is bound or not."""
        return like(array, require_current().capture(self._value(k, array)), array.weak)

    def _first_values(self, k: int, learned: Learned, value: Any) -> list[TracedArray]:
        """Return the initial state of a variable that is bound in the body first: its value before, or zeros."""
        if not isinstance(value, Unbound):
            leaves = Leaves(value)
            if leaves.same_structure(learned.leaves):
                pairs = list(zip(leaves.arrays, learned.leaves.arrays, learned.kinds, strict=True))
                if all(a.shape == b.shape and _adopts(a.kind, kind) for a, b, kind in pairs):
                    return [_converted(self._unchecked(k, a), kind) for a, _, kind in pairs]
        zeros = [
            as_traced(np.zeros(a.shape, dtype_of(k))) for a, k in zip(learned.leaves.arrays, learned.kinds, strict=True)
        ]
        return [
            like(p, value_of(z), _weak(k)) for p, z, k in zip(learned.leaves.arrays, zeros, learned.kinds, strict=True)
        ]

    def _is_object(self, k: int, value: Any) -> bool:
        if k in self.plan.as_value:
            return False
        return is_shared_array(value) and (k in self.plan.as_object or k not in self.variables.rebound)

    def _adopted(self, k: int, j: int, array: TracedArray) -> TracedArray:
        kind = self.plan.kinds.get((k, j))
        value = self._unchecked(k, array)
        made = value if kind is None else _converted(value, kind)
        made.doubt = array.doubt
        made.rank0 = self.plan.ranks.get((k, j), made.rank0)
        return made

    def _begin(self, inits: dict[int, list[TracedArray]]) -> tuple[Any, ...]:
        """Return the values of the variables before an iteration."""
        values = list(self.entry)
        for k, value in enumerate(self.entry):
            if k in self.variables.exits:
                values[k] = False
            elif k in inits:
                learned = self.plan.learned.get(k)
                pattern = Leaves(value) if learned is None else learned.leaves
                self._builders[k] = pattern
                flag = self._flag(k, value) if k in self.plan.maybe_unbound else None
                before = [] if isinstance(value, Unbound) else Leaves(value).arrays
                parameters = [
                    self._slot(init, k, j, flag, before[j] if j < len(before) else None)
                    for j, init in enumerate(inits[k])
                ]
                is_read = k in self.variables.carried
                values[k] = pattern.build(parameters) if is_read else Unbound(self.variables.names[k])
            elif k not in self.variables.carried:
                values[k] = Unbound(self.variables.names[k])
        return tuple(values)

    def _flag(self, k: int, value: Any) -> XlaOp:
        """Add the part of the state that tells whether a variable is unbound."""
        outer = self.part.trace.parent
        assert outer is not None
        is_unbound = unbound_flag(_arrays(value), outer)
        with resumed(outer):
            init = as_traced(isinstance(value, Unbound), bool) if is_unbound is None else TracedArray(is_unbound)
        parameter = TracedArray(self.part.parameter(init.aval.static))
        self._flags[k] = Slot(init, parameter, k, _FLAG)
        self.slots.append(self._flags[k])
        return parameter.op

    def _slot(
        self, init: TracedArray, k: int, j: int, is_unbound: XlaOp | None, before: TracedArray | None
    ) -> TracedArray:
        op = self.part.parameter(init.aval.static)
        parameter = self._with_flag(like(init, op, init.weak), k, is_unbound)
        slot = Slot(init, parameter, k, j, before=before)
        self.slots.append(slot)
        if (k, j) in self.plan.doubtful:
            slot.doubt = self._doubt(k, slot)
            if self.plan.doubtful[k, j]:
                parameter.doubt = Doubt(slot.doubt.parameter.op, is_numpy=False)
        return parameter

    def _doubt(self, k: int, slot: Slot) -> Slot:
        """Add the part of the state that tells whether a number has another class than the loop gives it."""
        outer = self.part.trace.parent
        assert outer is not None
        arrays = _arrays(self.entry[k])
        with resumed(outer):
            found = doubt_of(arrays[slot.leaf], class_of(slot.parameter)) if slot.leaf < len(arrays) else None
            init = as_traced(False, bool) if found is None else TracedArray(outer.capture(found.test))
        made = Slot(init, TracedArray(self.part.parameter(init.aval.static)), k, _DOUBT)
        self.slots.append(made)
        return made

    def _with_flag(self, array: TracedArray, k: int, is_unbound: XlaOp | None) -> TracedArray:
        if is_unbound is None:
            return array
        return PossiblyUnbound(array.op, array.weak, array.rank0, self.variables.names[k], is_unbound)

    def _add_written(self) -> None:
        """Make the values of arrays of enclosing functions, which iterations write to, parts of the state."""
        for array in self.plan.written:
            before = TracedArray(array.root_op)
            self.part.log.add(array)
            op = self.part.parameter(before.aval.static)
            array.root_op = op
            self.slots.append(Slot(before, TracedArray(op)))

    def _note_sharing(self) -> None:
        """Note which values before an iteration may be arrays that the body has under other names, too."""
        first: dict[int, TracedArray] = {}
        parameters = {(s.variable, s.leaf): s.parameter for s in self.slots if s.is_array}
        for slot in self.slots:
            if not slot.is_array or not self._is_local(slot.variable):
                continue
            roots = [] if slot.before is None else possible_roots(slot.before)
            has_names = slot.before is not None and has_other_names(slot.before)
            others = [r for r in roots if r.origin or has_names or id(r) in self.plan.overwritten]
            others += [first.setdefault(id(r), slot.parameter) for r in roots]
            others += self.plan.exchanged.get(slot.variable, ())
            others += [
                parameters[a] for a, b in self.plan.related if b == (slot.variable, slot.leaf) and a in parameters
            ]
            share(slot.parameter, others, self.variables.names[slot.variable], _ITERATIONS)

    # -- after the body

    def has_written(self) -> bool:
        """Return True if an array of the state, or from outside, was written in this pass so far."""
        if len(self.part.log.arrays) > len(self.plan.written):
            return True
        written = iter(self.plan.written)
        present = [next(written).root_op if s.variable < 0 else s.parameter._op for s in self.slots]
        return any(a is not b for a, b in zip(present, self.part.parameters[1:], strict=True))

    def finish(self, state: Sequence[Any]) -> bool:
        """Take the values of the variables after an iteration; return True if the pass was the last.

        Raises
        ------
        Peel, Unsuitable
            The state changes its types.
        """
        if self.plan.add_written(self.part.log.arrays):
            return self._abandon()
        self._check_names(state)
        before = self.plan.knowledge()
        for k, value in enumerate(state):
            self._variable(k, value)
        self._relate(state)
        self._note_overwritten()
        if self.plan.knowledge() != before:
            return self._abandon()
        self._take_arrays()
        self.part.close()
        return True

    def _written_slots(self) -> Iterator[tuple[TracedArray, Slot]]:
        """Yield the arrays of enclosing functions that iterations write to, with their parts of the state."""
        return zip(self.plan.written, [s for s in self.slots if s.variable < 0], strict=True)

    def _note_overwritten(self) -> None:
        """Note which arrays that variables have before the loop are written by another name."""
        before = [s.before for s in self.slots if s.is_array and s.before is not None]
        ids = {id(r) for array in before for r in possible_roots(array)}
        written = [a for a, s in self._written_slots() if a.root_op is not s.parameter._op]
        self.plan.overwritten |= {id(a) for a in written if id(a) in ids}

    def _abandon(self) -> bool:
        self.part.close()
        return False

    def _variable(self, k: int, value: Any) -> None:
        """Note the value of a variable after an iteration."""
        if k in self.variables.exits:
            self.flags.append(value_of(as_traced(value, bool)))
        elif k in self._builders:
            self._carried(k, value)
        elif value is self.given[k] or isinstance(value, Unbound):
            return
        elif isinstance(self.given[k], Unbound) or k not in self.variables.carried:
            self._bound_inside(k, value)
        else:
            self._changed(k, value)

    def _carried(self, k: int, value: Any) -> None:
        """Note the value of a variable that is carried as a value."""
        slots = [s for s in self.slots if s.variable == k and s.is_value]
        leaves = Leaves(value) if not isinstance(value, Unbound) else None
        if leaves is None or not leaves.same_structure(self._builders[k]):
            self._peel_or_fail(k, "changes its structure")
            return
        for slot, array in zip(slots, leaves.arrays, strict=True):
            self._check_identity(k, slot, array)
            before = self.plan.knowledge()
            self._check_kind(k, slot, array)
            self._check_rank0(k, slot, array)
            if array.doubt is not None and array.doubt.is_numpy:
                leave(self.part.trace, array.doubt)
            elif self.plan.knowledge() == before:
                self._check_class(k, slot, array)
            slot.op = self.part.trace.capture(self._value(k, array))
            if is_shared_array(array):
                self._note_exchange(k, possible_roots(array), array is slot.parameter)
        self._note_unbound(k, value)
        if k in self._flags:
            flag = unbound_flag(leaves.arrays, self.part.trace)
            self._flags[k].op = self.part.trace.constant(False, np.dtype(bool)) if flag is None else flag

    def _check_identity(self, k: int, slot: Slot, array: TracedArray) -> None:
        """Handle arrays that iterations do not replace, or both write in place and replace."""
        if not is_shared_array(slot.parameter):
            return
        if array is not slot.parameter:
            if self._is_written(slot):
                self._require_unread(k, slot)
        elif k not in self.plan.as_value:
            self.plan.as_object.add(k)

    def _check_kind(self, k: int, slot: Slot, array: TracedArray) -> None:
        before, after = slot.kind, array.kind
        if same_kind(before, after) and slot.parameter.shape == array.shape:
            return
        kind = agreed_kind([before, after])
        if slot.parameter.shape != array.shape or kind is None:
            self._peel_or_fail(
                k, f"is {array_text(slot.parameter)} before an iteration and {array_text(array)} after it"
            )
            return
        if same_kind(kind, before):
            return  # a number that is converted
        if not slot.parameter.weak and before is not bool:
            self._peel_or_fail(k, f"changes its dtype from {before} to {kind}")
        elif not _is_exact(slot.init, kind) and self.can_peel:
            raise Peel
        self.plan.kinds[k, slot.leaf] = kind
        if k in self.plan.learned:
            learned = self.plan.learned[k]
            kinds = [kind if j == slot.leaf else old for j, old in enumerate(learned.kinds)]
            self.plan.learned[k] = Learned(learned.leaves, tuple(kinds))

    def _check_rank0(self, k: int, slot: Slot, array: TracedArray) -> None:
        """Make a number of Python's one of NumPy's that iterations replace by one."""
        before, after = slot.parameter.rank0, array.rank0
        if array.shape or before == after or after is Rank0.PYTHON or k in self.plan.learned:
            return
        if Rank0.ARRAY not in (before, after):
            self.plan.ranks[k, slot.leaf] = after
        else:
            self._peel_or_fail(k, "is a number before an iteration and a 0-d array after it, or the other way round")

    def _check_class(self, k: int, slot: Slot, array: TracedArray) -> None:
        """Make it a part of the state whether a number has another class than the parameter, if that may be."""
        if array.ndim or is_shared_array(slot.parameter):
            return
        doubt = doubt_of(array, class_of(slot.parameter))
        doubt = None if doubt is None or doubt.is_numpy else doubt
        if slot.doubt is not None:
            no = self.part.trace.constant(False, np.dtype(bool))
            slot.doubt.op = no if doubt is None else self.part.trace.capture(doubt.test)
        if doubt is not None:
            self.plan.doubtful[k, slot.leaf] = True
        elif self.plan.may_skip and self._is_of_other_class(k, slot):
            self.plan.doubtful.setdefault((k, slot.leaf), False)

    def _is_of_other_class(self, k: int, slot: Slot) -> bool:
        """Return True if a number before the loop has another class than the loop gives it."""
        arrays = _arrays(self.entry[k])
        doubt = doubt_of(arrays[slot.leaf], class_of(slot.parameter)) if slot.leaf < len(arrays) else None
        return doubt is not None and not doubt.is_numpy

    def _bound_inside(self, k: int, value: Any) -> None:
        """Learn the type of a variable that iterations bind."""
        if k not in self.variables.kept and k not in self.variables.carried:
            return
        leaves = Leaves(value)
        self.plan.learned[k] = Learned(leaves, tuple([a.kind for a in leaves.arrays]))
        self._note_unbound(k, value)
        if self.plan.may_skip and k in self.variables.kept and self._is_local(k):
            self.plan.maybe_unbound.add(k)

    def _changed(self, k: int, value: Any) -> None:
        """Handle a variable that had an array, or a static value, before the iteration and has another one after it."""
        before = self.given[k]
        if not is_shared_array(before):
            if Leaves(value).arrays or not Leaves(value).same_structure(Leaves(before)):
                self._peel_or_fail(k, "changes its kind")
            return
        if isinstance(value, TracedArray) and value.owner is not self.part.trace and is_shared_array(value):
            self._other_array(k, value)
            return
        self.plan.as_value.add(k)

    def _other_array(self, k: int, value: TracedArray) -> None:
        """Handle a variable that names another array of an enclosing function after the iteration."""
        if not any(value is v for v in self.given):
            self._peel_or_fail(k, "names another array")
        else:
            self.plan.as_value.add(k)
            self._note_exchange(k, [value.root], False)

    def _check_names(self, state: Sequence[Any]) -> None:
        """Decide to record several iterations if variables exchange their arrays, until all have their own again."""
        order = list(range(len(state)))
        for k, value in enumerate(state):
            if k not in self._builders and is_shared_array(value) and value is not self.given[k]:
                order[k] = next((m for m, v in enumerate(self.given) if v is value), k)
        if order == sorted(order) or not self.can_peel:
            return
        place, period = list(order), 1
        while place != sorted(order) and period < MAX_PERIOD:
            place, period = [order[m] for m in place], period + 1
        if place == sorted(order):
            raise Repeat(period)

    def _peel_or_fail(self, k: int, change: str) -> NoReturn:
        if self.can_peel:
            raise Peel
        raise Unsuitable(f"{self.variables.names[k]} {change}")

    def _take_arrays(self) -> None:
        arrays = iter(self.plan.written)
        for slot in self.slots:
            if slot.variable < 0:
                slot.op = self.part.trace.capture(next(arrays).root_op)

    # -- after the loop

    def results(self) -> list[XlaOp]:
        """Return the state after an iteration, in the types of the one before."""
        made = []
        for slot in self.slots:
            assert slot.op is not None
            made.append(slot.op)
        return made

    def after(self, results: Sequence[XlaOp], exits: Sequence[XlaOp]) -> tuple[Any, ...]:
        """Return the values of the variables after the loop, and give arrays that it wrote theirs."""
        values = list(self.entry)
        by_variable: dict[int, list[TracedArray]] = {}
        arrays = iter(self.plan.written)
        flags = {s.variable: op for s, op in zip(self.slots, results, strict=True) if s.is_flag}
        by_slot = {id(s): op for s, op in zip(self.slots, results, strict=True)}
        doubts = {id(s): Doubt(by_slot[id(s.doubt)], is_numpy=False) for s in self.slots if s.doubt is not None}
        for slot, op in zip(self.slots, results, strict=True):
            k = slot.variable
            if k < 0:
                next(arrays).overwrite(op)
            elif slot.is_value:
                doubt = slot.init.doubt
                if doubt is not None and doubt.is_numpy:
                    leave(require_current(), doubt)
                array = self._with_flag(like(slot.parameter, op, _weak(slot.kind)), k, flags.get(k))
                array.doubt = doubts.get(id(slot))
                by_variable.setdefault(k, []).append(array)
        for k, parts in by_variable.items():
            values[k] = self._builders[k].build(parts)
        made = {(k, j): a for k, parts in by_variable.items() for j, a in enumerate(parts) if is_shared_array(a)}
        for k in by_variable:
            self._poison(k)
        self._note_sharing_after(made)
        for k, flag in zip(sorted(self.variables.exits), exits, strict=True):
            values[k] = TracedArray(flag)
        return tuple(values)

    def _note_sharing_after(self, made: Mapping[tuple[int, int], TracedArray]) -> None:
        """Note which arrays the values after the loop may be."""
        before = {(s.variable, s.leaf): s.before for s in self.slots if s.is_array and s.before is not None}
        for (k, j), array in made.items():
            others = list(self.plan.exchanged.get(k, ()))
            if (old := before.get((k, j))) is not None and (self.plan.may_skip or k in self.plan.exchanged):
                others.append(old)
            others += [made[a] for a, b in self.plan.related if b == (k, j) and a in made]
            share(array, others, self.variables.names[k], _ITERATIONS)

    def _note_exchange(self, k: int, roots: Sequence[TracedArray], is_kept: bool) -> None:
        """Note that a variable may name its first array after the loop, or one of these of enclosing functions."""
        outer = [r for r in roots if r.owner is not self.part.trace]
        if outer or (len(roots) > 1 and not is_kept):
            self.plan.exchanged.setdefault(k, []).extend(outer)

    def _relate(self, state: Sequence[Any]) -> None:
        """Note which arrays of the state, made by the iteration, share memory after it."""
        first: dict[int, tuple[int, int]] = {}
        for k, builder in self._builders.items():
            if isinstance(state[k], Unbound):
                continue
            leaves = Leaves(state[k])
            if not leaves.same_structure(builder):
                continue
            for j, array in enumerate(leaves.arrays):
                if is_shared_array(array) and array.root.owner is self.part.trace:
                    for root in possible_roots(array):
                        one = first.setdefault(id(root), (k, j))
                        if one[0] != k:
                            self.plan.related.add((one, (k, j)))

    def _is_written(self, slot: Slot) -> bool:
        """Return True if an iteration writes to the array that a variable has before it."""
        is_same = slot.parameter._op is self.part.parameters[1 + self.slots.index(slot)]
        return not is_same or may_have_been_written(slot.parameter)

    def _require_unread(self, k: int, slot: Slot) -> None:
        """Refuse a body that reads an array by another name which it writes and replaces by a variable."""
        if self.can_peel:
            raise Peel
        roots = [] if slot.before is None else possible_roots(slot.before)
        known = [r for r in roots if isinstance(r, KnownArray) and r.known is not None]
        if known:
            self._trace_in_next_pass(known)
            return
        parameters = {id(a): s.parameter._op for a, s in self._written_slots()}
        if any(self.part.trace.has_used(parameters.get(id(r), r.root_op)) for r in roots):
            raise Unsuitable(f"{self.variables.names[k]} is written and replaced, and has another name")

    def _trace_in_next_pass(self, arrays: Sequence[KnownArray]) -> None:
        """Make arrays traced, and learn that, so that the next pass sees where they are used."""
        for array in arrays:
            array.become_traced()
            self.plan.traced.add(id(array))

    def _poison(self, k: int) -> None:
        """Make later uses of an array an error that iterations wrote while a variable named it, and then replaced."""
        old = self.entry[k]
        if not is_shared_array(old):
            return
        for slot in self.slots:
            if slot.variable == k and self._is_written(slot):
                for root in possible_roots(old):
                    refuse_use(root, self.variables.names[k])


def _arrays(value: Any) -> list[TracedArray]:
    return [] if isinstance(value, Unbound) else Leaves(value).arrays


def _converted(array: TracedArray, kind: Kind) -> TracedArray:
    return like(array, convert(value_of(array), dtype_of(kind)), _weak(kind))


def _adopts(kind: Kind, other: Kind) -> bool:
    """Return True if a number becomes one of another type."""
    agreed = agreed_kind([kind, other])
    return agreed is not None and same_kind(agreed, other)


def _weak(kind: Kind) -> type | None:
    return kind if isinstance(kind, type) and kind is not bool else None


def _is_exact(array: TracedArray, kind: Kind) -> bool:
    """Return True if the value is a constant that another type holds exactly."""
    instruction = array.op.instruction
    if instruction is None or instruction.opcode != "constant":
        return False
    value = np.asarray(instruction.attrs["literal"].array)
    converted = value.astype(dtype_of(kind))
    if converted.dtype.kind == "c" and value.dtype.kind != "c":
        converted = converted.real
    return bool((converted.astype(value.dtype) == value).all())
