"""Elements that the iterations of a loop append to lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cyxla.errors import TraceError
from cyxla.numpy.rewriting.loops.growing import Growing
from cyxla.numpy.rewriting.loops.plans import Unsuitable, is_shared_array
from cyxla.numpy.rewriting.loops.stacks import Stacks, with_traced_numbers
from cyxla.numpy.tracing.arrays.sharing import may_be_untraced, possible_roots, share, stand_for_untraced
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.stacked_list import StackedList, structure_of
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, value_of
from cyxla.numpy.tracing.containers import Tree, flatten
from cyxla.numpy.tracing.trace import current, require_current, user_line
from cyxla.xla.hlo.builder import XlaOp


def roots_of(values: Sequence[Any]) -> list[TracedArray]:
    """Return the arrays in values, to which a write is seen by all who have them."""
    return [v.root for value in values for v in flatten(value)[0] if is_shared_array(v)]


class Appends:
    """Elements that the iterations of a loop append to lists, one to each."""

    def __init__(self) -> None:
        self._stacks: dict[int, tuple[StackedList, Stacks]] = {}
        self._growing: dict[int, tuple[StackedList, Growing]] = {}
        self._new: list[Stacks] = []
        self._names: dict[int, tuple[list[int], list[int]]] = {}  # variables after the loop and before it, by stacks
        self._of_outer: dict[int, Growing] = {}

    def __bool__(self) -> bool:
        return bool(self._stacks or self._growing)

    @property
    def grows(self) -> bool:
        """True if a list gets a run-time length."""
        return bool(self._growing)

    def add(self, values: StackedList, value: Any, number: Any, count: int) -> None:
        """Record that an iteration appends a value; the first pass only learns its type.

        Raises
        ------
        Unsuitable
            The value cannot be an element of an array.
        """
        if id(values) in self._stacks:
            self._stacks[id(values)][1].store_own(number, with_traced_numbers(value))
            return
        stacks = Stacks(*_structure(value), count)
        self._stacks[id(values)] = values, stacks
        self._new.append(stacks)

    def add_some(self, values: StackedList, value: Any, times: int | None) -> None:
        """Record that the loop appends a value up to a number of times; the first pass only learns its type.

        Raises
        ------
        Unsuitable
            The value cannot be an element of an array, or the list has elements.
        """
        value = with_traced_numbers(value)
        if id(values) not in self._growing:
            growing = Growing(*_structure(value), values)
            self._growing[id(values)] = values, growing
            self._new.append(growing)
        growing = self._growing[id(values)][1]
        if growing in self._new:
            growing.expect(value, times)
        else:
            _require_own(value)
            growing.append(value)

    def have_room(self) -> list[XlaOp]:
        """Return whether there is room for the elements so far, for each list that gets a run-time length."""
        return [growing.has_room() for _, growing in self._growing.values() if growing.arrays]

    def take_new(self) -> list[Stacks]:
        """Return the arrays of which a pass has learned."""
        new, self._new = self._new, []
        return new

    def check(self, before: Sequence[tuple[TracedArray, Any]], after: Sequence[Any]) -> None:
        """Check that no appended array is written later, in the same iteration or in the next one.

        Parameters
        ----------
        before : sequence of (TracedArray, XlaOp)
            Arrays of the state when the iteration began, with their values then.
        after : sequence of object
            Values of the state when it ends.

        Raises
        ------
        Unsuitable
            One is written.
        """
        stored = [pair for _, stacks in (*self._stacks.values(), *self._growing.values()) for pair in stacks.all_stored]
        is_written = any(root.root_op is not value for root, value in before)
        carried = {id(r) for r, _ in before} | {id(r) for r in roots_of(after)}
        if any(root.root_op is not value or (is_written and id(root) in carried) for root, value in stored):
            raise Unsuitable("it writes to an array that it appends to a list", "append a copy: x.copy()")

    def growing_of(self, values: StackedList) -> Growing | None:
        """Return the arrays of a list to which iterations append some elements."""
        found = self._growing.get(id(values))
        return None if found is None else found[1]

    def append_inside(self, growing: Growing) -> None:
        """Note that a loop appends to a list that a loop around it lets grow."""
        self._of_outer[id(growing)] = growing

    def note_names(self, before: Sequence[Any], after: Sequence[Any]) -> None:
        """Note which variables name an appended array before the loop, or may name one after it.

        Parameters
        ----------
        before, after : sequence of object
            Values of the state when the iteration began, and when it ends.
        """
        if not (self or self._of_outer):
            return
        entry = [{id(root) for root in roots_of([value])} for value in before]
        ends = [{id(r) for root in roots_of([value]) for r in possible_roots(root)} for value in after]
        own = [stacks for _, stacks in (*self._stacks.values(), *self._growing.values())]
        for stacks in (*own, *self._of_outer.values()):
            stored = {id(root) for root, _ in stacks.all_stored}
            named, found = set[int](), set(stored)
            while more := {k for k, roots in enumerate(ends) if k not in named and roots & found}:
                named |= more
                found.update(*(entry[k] for k in more))
            self._names[id(stacks)] = sorted(named), [k for k, roots in enumerate(entry) if roots & stored]

    def guard(self, is_guarded: bool) -> None:
        """Refuse all uses of the lists while an iteration is recorded, in which they lack elements."""
        for values, stacks in (*self._stacks.values(), *self._growing.values()):
            values.is_guarded = is_guarded
            values.growing = None
            stacks.stored, stacks.stored_before = [], []
            if is_guarded and isinstance(stacks, Growing) and stacks.arrays:
                values.growing = stacks

    def finish(self, before: Sequence[Any], after: Sequence[Any]) -> None:
        """Append the elements of the loop of the program to the lists.

        Parameters
        ----------
        before, after : sequence of object
            Values of the variables before the loop and after it.
        """
        for values, stacks in self._stacks.values():
            values.append_all(stacks.arrays, stacks.elements, stacks.doubts())
            self._share(values, stacks, before, after)
        for values, growing in self._growing.values():
            values.become_sized(*growing.sized(), growing.doubts())
            self._share(values, growing, before, after)
        for growing in self._of_outer.values():
            growing.stored_before += [(r, r.root_op) for r in roots_of(self._named(growing, before, after))]

    def _named(self, stacks: Stacks, before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
        named, named_before = self._names.get(id(stacks), ([], []))
        return [*[after[k] for k in named], *[before[k] for k in named_before]]

    def _share(self, values: StackedList, stacks: Stacks, before: Sequence[Any], after: Sequence[Any]) -> None:
        """Note that elements may be arrays that have other names, of before the loop or after it."""
        others = roots_of([*self._named(stacks, before, after), *stacks.before])
        arrays = [s.padded if isinstance(s, SizedArray) else s for s in (*stacks.arrays, *(values.stacks or ()))]
        for root in {id(a.root): a.root for a in arrays}.values():
            share(root, others, "an element of a list", "a loop that appends to it", most=None)
            if any(map(may_be_untraced, stacks.before)):
                stand_for_untraced(root)


def _structure(value: Any) -> tuple[list[TracedArray], Tree]:
    """Return the leaves and the structure of an element, whose known numbers become traced ones."""
    structure = structure_of(value)
    program = require_current().program
    if structure is None and not program.keeps_known:
        program.made_traced = True
        leaves, tree = flatten(with_traced_numbers(value))
        structure = structure_of(tree.build([_unknown(v) for v in leaves]))
    if structure is None:
        raise Unsuitable("it appends values to a list that are not all traced", "append new arrays and numbers")
    return structure


def _unknown(leaf: Any) -> Any:
    """Return an array like one whose elements are known, and others as they are."""
    is_known = isinstance(leaf, TracedArray) and leaf.known is not None
    return TracedArray(value_of(leaf), leaf.weak, rank0=leaf.rank0) if is_known else leaf


def _require_own(value: Any) -> None:
    """Refuse an element that shares memory with an array from outside of the loops being recorded."""
    traces, trace = set(), current()
    while trace is not None and trace.writes is not None:
        traces.add(id(trace))
        trace = trace.parent
    if any(id(root.owner) not in traces for root in roots_of([value])):
        raise TraceError("an element of the list shares memory with an array from outside", where=user_line())
