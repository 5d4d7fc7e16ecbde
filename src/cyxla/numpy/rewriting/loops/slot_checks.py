"""Checks that the state of a loop has the same types after an iteration as before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from cyxla.numpy.control.carry import agreed_kind, array_text
from cyxla.numpy.rewriting.loops.array_names import ArrayNames
from cyxla.numpy.rewriting.loops.plans import Learned, Peel, Plan, Variables, is_shared_array, peel_or_fail
from cyxla.numpy.rewriting.loops.slots import Slot, arrays_of
from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.results.promotion import Kind, dtype_of, same_kind
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import Trace
from cyxla.numpy.tracing.user_program.classes import class_of
from cyxla.numpy.tracing.user_program.doubts import doubt_of, leave


class SlotChecks:
    """Checks of the parts of a loop's state after an iteration; the plan learns of types that change.

    Parameters
    ----------
    variables : Variables
        Variables of the loop.
    plan : Plan
        Plan of the pass, to which they add.
    entry : sequence
        Values of the variables before the loop.
    trace : Trace
        Trace of the body.
    names : ArrayNames
        Names of the arrays of the state.
    slots : sequence of Slot
        Parts of the state.
    can_peel : bool
        Whether an iteration can be run before the loop.
    """

    def __init__(
        self, variables: Variables, plan: Plan, entry: Sequence[Any], trace: Trace, names: ArrayNames,
        slots: Sequence[Slot], can_peel: bool,
    ) -> None:  # fmt: skip
        self._variables, self._plan, self._entry = variables, plan, entry
        self._trace, self._names, self._can_peel = trace, names, can_peel
        self._slots = {id(s.parameter): s for s in slots if s.is_value and s.variable >= 0}

    def check(self, slot: Slot, array: TracedArray) -> None:
        """Compare the value of a part after an iteration with the one before.

        Raises
        ------
        Peel, Unsuitable
            The part changes its type.
        """
        slot.is_mixed = array.is_mixed
        self._check_identity(slot, array)
        before = self._plan.knowledge()
        self._check_kind(slot, array)
        self._check_rank0(slot, array)
        if array.doubt is not None and array.doubt.is_numpy:
            leave(self._trace, array.doubt)
            if slot.doubt is not None:
                slot.doubt.op = self._trace.constant(False, np.dtype(bool))
        elif self._plan.knowledge() == before:
            self._check_class(slot, array)

    def _check_identity(self, slot: Slot, array: TracedArray) -> None:
        """Handle arrays that iterations do not replace, or both write in place and replace."""
        if not is_shared_array(slot.parameter):
            return
        if array is not slot.parameter:
            if self._names.is_written(slot):
                if self._can_peel:
                    raise Peel
                self._names.require_unread(slot)
        elif slot.variable not in self._plan.as_value:
            self._plan.as_object.add(slot.variable)

    def _check_kind(self, slot: Slot, array: TracedArray) -> None:
        before, after = slot.kind, array.kind
        if same_kind(before, after) and slot.parameter.shape == array.shape:
            return
        kind = agreed_kind([before, after])
        if slot.parameter.shape != array.shape or kind is None:
            self._peel_or_fail(
                slot, f"is {array_text(slot.parameter)} before an iteration and {array_text(array)} after it"
            )
            return
        if same_kind(kind, before):
            return  # a number that is converted
        if not slot.parameter.weak and before is not bool:
            self._peel_or_fail(slot, f"changes its dtype from {before} to {kind}")
        becomes_complex = dtype_of(kind).kind == "c" and dtype_of(before).kind != "c"
        if self._can_peel and (becomes_complex or not _is_exact(slot.init, kind)):
            raise Peel
        k = slot.variable
        self._plan.kinds[k, slot.leaf] = kind
        if becomes_complex or (_is_told_apart(kind) and array.doubt is not None and not array.doubt.is_numpy):
            self._plan.doubtful[k, slot.leaf] = True
        if k in self._plan.learned:
            learned = self._plan.learned[k]
            kinds = [kind if j == slot.leaf else old for j, old in enumerate(learned.kinds)]
            self._plan.learned[k] = Learned(learned.leaves, tuple(kinds))

    def _check_rank0(self, slot: Slot, array: TracedArray) -> None:
        """Make a number of Python's one of NumPy's that iterations replace by one."""
        before, after = slot.parameter.rank0, array.rank0
        if array.shape or before == after or after is Rank0.PYTHON or slot.variable in self._plan.learned:
            return
        if Rank0.ARRAY not in (before, after):
            self._plan.ranks[slot.variable, slot.leaf] = after
        else:
            self._peel_or_fail(slot, "is a number before an iteration and a 0-d array after it, or the other way round")

    def _check_class(self, slot: Slot, array: TracedArray) -> None:
        """Make it a part of the state whether a number has another class than the parameter, if that may be."""
        if array.ndim or is_shared_array(slot.parameter):
            return
        source = self._slots.get(id(array), slot)
        if source is not slot and self._is_of_other_class(source):  # in the iteration after the first one
            self._plan.doubtful[source.variable, source.leaf] = True
        doubt = doubt_of(array, class_of(slot.parameter))
        doubt = None if doubt is None or doubt.is_numpy else doubt
        if slot.doubt is not None:
            no = self._trace.constant(False, np.dtype(bool))
            slot.doubt.op = no if doubt is None else self._trace.capture(doubt.test)
        if doubt is not None or self._begins_doubtful(slot):
            self._plan.doubtful[slot.variable, slot.leaf] = True
        elif self._plan.may_skip and self._is_of_other_class(slot):
            self._plan.doubtful.setdefault((slot.variable, slot.leaf), False)

    def _peel_or_fail(self, slot: Slot, change: str) -> NoReturn:
        peel_or_fail(self._can_peel, f"{self._variables.names[slot.variable]} {change}")

    def _begins_doubtful(self, slot: Slot) -> bool:
        """Return True if a number of Python before the loop is of another class in some runs."""
        before = arrays_of(self._entry[slot.variable])
        doubt = before[slot.leaf].doubt if slot.leaf < len(before) else None
        return doubt is not None and not doubt.is_numpy and _is_told_apart(slot.kind)

    def _is_of_other_class(self, slot: Slot) -> bool:
        """Return True if a number before the loop has another class than the loop gives it."""
        doubt = slot.doubt_before(self._entry[slot.variable])
        return doubt is not None and not doubt.is_numpy


def _is_told_apart(kind: Kind) -> bool:
    """Return True unless a number is one of NumPy that Python's numbers become beside arrays of its type."""
    return isinstance(kind, type) or kind.kind == "c"


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
