"""Arrays of a loop's state that may have several names: variables, and names outside the loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cyxla.numpy.rewriting.loops.plans import Plan, Unsuitable, Variables, is_shared_array
from cyxla.numpy.rewriting.loops.slots import Slot
from cyxla.numpy.rewriting.parts.parts import Leaves, Part
from cyxla.numpy.rewriting.parts.unbound import Unbound
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.sharing import (
    has_other_names,
    may_have_been_written,
    possible_roots,
    refuse_use,
    share,
)
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray

_ITERATIONS = "the number of iterations"


class ArrayNames:
    """Names of the arrays of a loop's state in one pass, and what the pass learns of them.

    Parameters
    ----------
    variables : Variables
        Variables of the loop.
    plan : Plan
        Plan of the pass, to which it adds.
    part : Part
        Trace of the body.
    slots : sequence of Slot
        Parts of the state, in the order of the parameters after the first.
    """

    def __init__(self, variables: Variables, plan: Plan, part: Part, slots: Sequence[Slot]) -> None:
        self._variables, self._plan, self._part, self._slots = variables, plan, part, slots

    def note_before(self) -> None:
        """Note which values before an iteration may be arrays that the body has under other names, too."""
        first: dict[int, TracedArray] = {}
        parameters = {(s.variable, s.leaf): s.parameter for s in self._slots if s.is_array}
        firsts = self._arrays_before()
        for slot in self._slots:
            if not slot.is_array or not self._variables.is_local(slot.variable):
                continue
            roots = [] if slot.before is None else possible_roots(slot.before)
            others = [r for before in (slot.before, *self._sources(slot, firsts)) for r in self._named_roots(before)]
            others += [first.setdefault(id(r), slot.parameter) for r in roots]
            others += self._plan.exchanged.get(slot.variable, ())
            others += [
                parameters[a] for a, b in self._plan.related if b == (slot.variable, slot.leaf) and a in parameters
            ]
            share(slot.parameter, others, self._variables.names[slot.variable], _ITERATIONS)

    def _arrays_before(self) -> dict[tuple[int, int], TracedArray]:
        return {(s.variable, s.leaf): s.before for s in self._slots if s.is_array and s.before is not None}

    def _named_roots(self, array: TracedArray | None) -> list[TracedArray]:
        """Return the arrays that one may be, if the body may have them under other names."""
        roots = [] if array is None else possible_roots(array)
        has_names = array is not None and has_other_names(array)
        return [r for r in roots if r.origin or has_names or id(r) in self._plan.overwritten]

    def _sources(self, slot: Slot, firsts: Mapping[tuple[int, int], TracedArray]) -> list[TracedArray]:
        """Return the arrays of other parts of the state before the loop that one may be after some iterations."""
        own = slot.variable, slot.leaf
        found, pending = {own}, [own]
        while pending:
            new = self._plan.flows.get(pending.pop(), set()) - found
            found |= new
            pending += new
        return [firsts[key] for key in sorted(found - {own}) if key in firsts]

    def note_flow(self, slot: Slot, array: TracedArray) -> None:
        """Note which arrays of the state before an iteration a part of it may be after it."""
        roots = set(map(id, possible_roots(array)))
        found = [s for s in self._slots if s.is_array and id(s.parameter) in roots and s is not slot]
        if found:
            sources = self._plan.flows.setdefault((slot.variable, slot.leaf), set())
            sources.update((s.variable, s.leaf) for s in found)

    def note_exchange(self, k: int, roots: Sequence[TracedArray], is_kept: bool) -> None:
        """Note that a variable may name its first array after the loop, or one of these of enclosing functions."""
        outer = [r for r in roots if r.owner is not self._part.trace]
        if outer or (len(roots) > 1 and not is_kept):
            self._plan.exchanged.setdefault(k, []).extend(outer)

    def relate(self, state: Sequence[Any], builders: Mapping[int, Leaves]) -> None:
        """Note which arrays of the state, made by the iteration, share memory after it."""
        first: dict[int, tuple[int, int]] = {}
        for k, builder in builders.items():
            if isinstance(state[k], Unbound):
                continue
            leaves = Leaves(state[k])
            if not leaves.same_structure(builder):
                continue
            for j, array in enumerate(leaves.arrays):
                if is_shared_array(array) and array.root.owner is self._part.trace:
                    for root in possible_roots(array):
                        one = first.setdefault(id(root), (k, j))
                        if one[0] != k:
                            self._plan.related.add((one, (k, j)))

    def note_overwritten(self) -> None:
        """Note which arrays that variables have before the loop are written by another name."""
        before = [s.before for s in self._slots if s.is_array and s.before is not None]
        ids = {id(r) for array in before for r in possible_roots(array)}
        written = [a for a, s in self._written() if a.root_op is not s.parameter._op]
        self._plan.overwritten |= {id(a) for a in written if id(a) in ids}

    def is_written(self, slot: Slot) -> bool:
        """Return True if an iteration writes to the array that a variable has before it."""
        is_same = slot.parameter._op is self._part.parameters[1 + self._slots.index(slot)]
        return not is_same or may_have_been_written(slot.parameter)

    def require_unread(self, slot: Slot) -> None:
        """Refuse a body that reads an array by another name which it writes and replaces by a variable."""
        roots = [] if slot.before is None else possible_roots(slot.before)
        known = [r for r in roots if isinstance(r, KnownArray) and r.known is not None]
        if known:
            self._trace_in_next_pass(known)
            return
        parameters = {id(a): s.parameter._op for a, s in self._written()}
        if any(self._part.trace.has_used(parameters.get(id(r), r.root_op)) for r in roots):
            name = self._variables.names[slot.variable]
            raise Unsuitable(f"{name} is written and replaced, and has another name", "write to a copy")

    def note_after(self, made: Mapping[tuple[int, int], TracedArray]) -> None:
        """Note which arrays the values after the loop may be."""
        before = self._arrays_before()
        slots = {(s.variable, s.leaf): s for s in self._slots if s.is_array}
        for (k, j), array in made.items():
            others = list(self._plan.exchanged.get(k, ()))
            if (old := before.get((k, j))) is not None and (self._plan.may_skip or k in self._plan.exchanged):
                others.append(old)
            if (k, j) in slots:
                others += self._sources(slots[k, j], before)
            others += [made[a] for a, b in self._plan.related if b == (k, j) and a in made]
            share(array, others, self._variables.names[k], _ITERATIONS)

    def refuse_uses(self, k: int, old: Any) -> None:
        """Make later uses of an array an error that iterations wrote while a variable named it, and then replaced."""
        is_sized = isinstance(old, SizedArray)
        if not (is_shared_array(old) or is_sized):
            return
        for slot in self._slots:
            if slot.variable == k and self.is_written(slot) and not (is_sized and slot.is_kept):
                for root in possible_roots(old.padded if is_sized else old):
                    refuse_use(root, self._variables.names[k])

    def _written(self) -> Iterator[tuple[TracedArray, Slot]]:
        """Yield the arrays of enclosing functions that iterations write to, with their parts of the state."""
        return zip(self._plan.written, [s for s in self._slots if s.variable < 0], strict=True)

    def _trace_in_next_pass(self, arrays: Sequence[KnownArray]) -> None:
        """Make arrays traced, and learn that, so that the next pass sees where they are used."""
        for array in arrays:
            array.become_traced()
            self._plan.traced.add(id(array))
