"""One pass over the body of a loop: its state becomes parameters of a trace, and the state after it its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from cyxla.numpy.rewriting.loops.array_names import ArrayNames
from cyxla.numpy.rewriting.loops.initial_state import initial_values, note_unbound, unchecked_value
from cyxla.numpy.rewriting.loops.plans import (
    Learned,
    Plan,
    Repeat,
    Unsuitable,
    Variables,
    is_shared_array,
    peel_or_fail,
)
from cyxla.numpy.rewriting.loops.slot_checks import SlotChecks
from cyxla.numpy.rewriting.loops.slots import DOUBT, FLAG, Slot, arrays_of, weak_class
from cyxla.numpy.rewriting.loops.state_containers import StateContainers
from cyxla.numpy.rewriting.parts.branch_sizes import with_bounds_of
from cyxla.numpy.rewriting.parts.parts import Leaves, Part, like
from cyxla.numpy.rewriting.parts.python_state import PythonState
from cyxla.numpy.rewriting.parts.unbound import PossiblyUnbound, Unbound, unbound_flag
from cyxla.numpy.tracing.arrays.sharing import may_be_untraced, possible_roots, stand_for_untraced, untraced_write
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import Doubt, TracedArray, as_traced, value_of
from cyxla.numpy.tracing.trace import require_current, resumed
from cyxla.numpy.tracing.user_program.doubts import leave, mixes_classes
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp

MAX_PERIOD = 6  # iterations that are recorded as one, at most
INDEX = Shape.array(ElementType.S64)


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
    objects : PythonState
        Objects before the loop.
    """

    def __init__(
        self, variables: Variables, plan: Plan, entry: Sequence[Any], can_peel: bool, objects: PythonState
    ) -> None:
        self.variables, self.plan, self.entry, self.can_peel = variables, plan, entry, can_peel
        self.slots: list[Slot] = []
        self.flags: list[XlaOp] = []
        inits = initial_values(variables, plan, entry)
        self.part = Part("body")
        self.index = self.part.parameter(INDEX)
        self._builders: dict[int, Leaves] = {}
        self._ends: list[tuple[Slot, TracedArray]] = []  # parts, and the arrays that they are after an iteration
        self._flags: dict[int, Slot] = {}  # by the variable that may be unbound
        self.state = self._begin(inits)
        self.given = self.state
        self._add_written()
        self._names = ArrayNames(variables, plan, self.part, self.slots)
        self._names.note_before()
        self.containers = StateContainers(variables, plan, entry, self.given, objects)
        self._checks = SlotChecks(variables, plan, entry, self.part.trace, self._names, self.slots, can_peel)

    # -- before the body

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
                before = None if isinstance(value, Unbound) else Leaves(value)
                parameters = [self._slot(init, k, j, flag, before) for j, init in enumerate(inits[k])]
                is_read = k in self.variables.carried
                values[k] = pattern.build(parameters) if is_read else Unbound(self.variables.names[k])
            elif k not in self.variables.carried:
                values[k] = Unbound(self.variables.names[k])
        return tuple(values)

    def _flag(self, k: int, value: Any) -> XlaOp:
        """Add the part of the state that tells whether a variable is unbound."""
        outer = self.part.trace.parent
        assert outer is not None
        is_unbound = unbound_flag(arrays_of(value), outer)
        with resumed(outer):
            init = as_traced(isinstance(value, Unbound), bool) if is_unbound is None else TracedArray(is_unbound)
        parameter = TracedArray(self.part.parameter(init.aval.static))
        self._flags[k] = Slot(init, parameter, k, FLAG)
        self.slots.append(self._flags[k])
        return parameter.op

    def _slot(self, init: TracedArray, k: int, j: int, is_unbound: XlaOp | None, before: Leaves | None) -> TracedArray:
        op = self.part.parameter(init.aval.static)
        parameter = self._with_flag(like(init, op, init.weak), k, is_unbound)
        entering = arrays_of(self.entry[k])
        parameter.is_mixed = j < len(entering) and mixes_classes(entering[j], parameter)
        slot = Slot(init, parameter, k, j)
        if before is not None and j < len(before.arrays):
            slot.before, slot.begins_untraced = before.arrays[j], may_be_untraced(before.given(j))
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
        with resumed(outer):
            found = slot.doubt_before(self.entry[k])
            init = as_traced(False, bool) if found is None else TracedArray(outer.capture(found.test))
        made = Slot(init, TracedArray(self.part.parameter(init.aval.static)), k, DOUBT)
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
            The state changes its types, or a list, dict or dataclass of it is changed that has several names.
        """
        self.containers.check(state, can_peel=self.can_peel)
        if self.plan.add_written(self.part.log.arrays):
            return self._abandon()
        self._check_names(state)
        before = self.plan.knowledge()
        for k, value in enumerate(state):
            self._variable(k, value)
        self._find_untraced()
        self._names.relate(state, self._builders)
        self._names.note_overwritten()
        self.containers.learn(state)
        if self.plan.knowledge() != before:
            return self._abandon()
        self._take_arrays()
        self.part.close()
        return True

    def _find_untraced(self) -> None:
        """Find the variables that get arrays which are not traced from others; refuse writes to these arrays."""
        if not any(s.begins_untraced or s.ends_untraced for s in self.slots):
            return
        parameters = {id(s.parameter): s for s in self.slots}
        flows = [(slot, parameters[id(root)]) for slot, root in self._ends if id(root) in parameters]
        for _ in flows:
            for slot, source in flows:
                slot.ends_untraced |= source.begins_untraced or source.ends_untraced
        written = self._written()
        if any((s.begins_untraced or s.ends_untraced) and id(s.parameter) in written for s in self.slots):
            raise untraced_write()

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
        if isinstance(value, SizedArray) and value is self.given[k] and k not in self.plan.as_value:
            self.plan.as_object.add(k)
        slots = [s for s in self.slots if s.variable == k and s.is_value]
        leaves = Leaves(value) if not isinstance(value, Unbound) else None
        if leaves is None or not leaves.same_structure(self._builders[k]):
            self._peel_or_fail(k, "changes its structure")
            return
        fitted = with_bounds_of(value, self.given[k])
        if fitted is not value and any(map(self._names.is_written, slots)):
            self._peel_or_fail(k, "is written in place, and a part of it is the array of the next iteration")
        padded = Leaves(fitted).arrays
        for j, (slot, array, data) in enumerate(zip(slots, leaves.arrays, padded, strict=True)):
            self._checks.check(slot, data)
            slot.ends_untraced = may_be_untraced(leaves.given(j))
            self._ends.append((slot, array.root))
            slot.op = self.part.trace.capture(unchecked_value(self.variables, k, data))
            slot.is_kept = array is slot.parameter
            if is_shared_array(array):
                self._names.note_flow(slot, array)
                self._names.note_exchange(k, possible_roots(array), array is slot.parameter)
        note_unbound(self.variables, self.plan, k, value)
        if k in self._flags:
            flag = unbound_flag(leaves.arrays, self.part.trace)
            self._flags[k].op = self.part.trace.constant(False, np.dtype(bool)) if flag is None else flag

    def _bound_inside(self, k: int, value: Any) -> None:
        """Learn the type of a variable that iterations bind."""
        if k not in self.variables.kept and k not in self.variables.carried:
            return
        leaves = Leaves(value)
        self.plan.learned[k] = Learned(leaves, tuple([a.kind for a in leaves.arrays]))
        note_unbound(self.variables, self.plan, k, value)
        if self.plan.may_skip and k in self.variables.kept and self.variables.is_local(k):
            if not leaves.arrays:
                name = self.variables.names[k]
                raise Unsuitable(f"{name} is {type(value).__name__} after it, or what it was before it")
            self.plan.maybe_unbound.add(k)

    def _changed(self, k: int, value: Any) -> None:
        """Handle a variable that had an array, or a static value, before the iteration and has another one after it."""
        before = self.given[k]
        if isinstance(before, SizedArray):
            self.plan.as_value.add(k)
            return
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
            self._names.note_exchange(k, [value.root], False)

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
        peel_or_fail(self.can_peel, f"{self.variables.names[k]} {change}")

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

    def after(self, results: Sequence[XlaOp], exits: Sequence[XlaOp], count: XlaOp | None = None) -> tuple[Any, ...]:
        """Return the values of the variables after the loop, and give arrays that it wrote theirs.

        Parameters
        ----------
        results : sequence of XlaOp
            State after the loop.
        exits : sequence of XlaOp
            Flags that have ended it.
        count : XlaOp, optional
            s64[], the number of iterations, if there may be none.
        """
        values = list(self.entry)
        by_variable: dict[int, list[TracedArray]] = {k: [] for k in self._builders}
        arrays = iter(self.plan.written)
        flags = {s.variable: op for s, op in zip(self.slots, results, strict=True) if s.is_flag}
        by_slot = {id(s): op for s, op in zip(self.slots, results, strict=True)}
        doubts = {id(s): Doubt(by_slot[id(s.doubt)], is_numpy=False) for s in self.slots if s.doubt is not None}
        written = self._written()
        for slot, op in zip(self.slots, results, strict=True):
            k = slot.variable
            if k < 0:
                next(arrays).overwrite(op)
            elif slot.is_value:
                doubt = slot.init.doubt
                if doubt is not None and doubt.is_numpy:
                    leave(require_current(), doubt)
                array = self._same_array(slot, written) if k not in flags else None
                if array is None:
                    array = self._with_flag(like(slot.parameter, op, weak_class(slot.kind)), k, flags.get(k))
                    array.doubt = doubts.get(id(slot))
                    array.is_mixed = slot.is_mixed or (self.plan.may_skip and slot.parameter.is_mixed)
                is_untraced = slot.ends_untraced or (slot.begins_untraced and self.plan.may_skip)
                by_variable[k].append(stand_for_untraced(array) if is_untraced else array)
        for k, parts in by_variable.items():
            values[k] = self._builders[k].build(parts)
            if k not in flags:
                values[k] = self.containers.kept(values[k], k, written)
        same = {id(s.before) for s in self.slots}
        made = {
            (k, j): a for k, parts in by_variable.items() for j, a in enumerate(parts)
            if is_shared_array(a) and id(a) not in same
        }  # fmt: skip
        for k in by_variable:
            self._names.refuse_uses(k, self.entry[k])
        self._names.note_after(made)
        for k, flag in zip(sorted(self.variables.exits), exits, strict=True):
            values[k] = TracedArray(flag)
        self.containers.forget()
        self.containers.note_after(values, count if self.plan.may_skip else None)
        return tuple(values)

    def _same_array(self, slot: Slot, written: set[int]) -> TracedArray | None:
        """Return the array before the loop if iterations leave it in its place, and do not write it; else None."""
        before, parameter = slot.before, slot.parameter
        if before is None or not slot.is_kept or not slot.is_array or id(parameter) in written:
            return None
        if not is_shared_array(before) or (before.kind, before.shape) != (parameter.kind, parameter.shape):
            return None
        return before

    def _written(self) -> set[int]:
        """Return the identities of the arrays of the state that iterations write."""
        pairs = zip(self.slots, self.part.parameters[1:], strict=True)
        return {id(s.parameter) for s, op in pairs if s.variable >= 0 and s.parameter._op is not op}
