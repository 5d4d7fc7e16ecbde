"""Arrays in which the iterations of a loop of the program store the elements of a list."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from cyxla.errors import TraceError, UnimplementedError
from cyxla.numpy.rewriting.loops.plans import Unsuitable, is_shared_array
from cyxla.numpy.tracing.arrays.number_storage import leaf_of
from cyxla.numpy.tracing.arrays.sharing import may_be_untraced, possible_roots, share, stand_for_untraced
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, size_array
from cyxla.numpy.tracing.arrays.stacked_list import RUN_TIME, Elements, StackedList, structure_of
from cyxla.numpy.tracing.arrays.traced_array import Doubt, TracedArray, as_traced, value_of
from cyxla.numpy.tracing.containers import Tree, flatten
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import current, require_current, user_line
from cyxla.numpy.tracing.user_program.classes import class_of
from cyxla.numpy.tracing.user_program.doubts import leave
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

_BOOL: Final = np.dtype(bool)
MOST_BYTES: Final = 1 << 28  # of the arrays for a list of run-time length
LIMITED_BYTES: Final = 1 << 20  # of those for a list that may have more elements, or any number: NumPy runs if it has

_TYPE_HINT = "give all elements one class, shape and dtype"


def with_traced_numbers(value: Any) -> Any:
    """Return an element with its known numbers and arrays as traced ones."""
    leaves, tree = flatten(value)
    if all(isinstance(v, TracedArray) and v.known is None for v in leaves):
        return value
    return tree.build([as_traced(v) if _is_known_number(v) else v for v in leaves])


def _is_known_number(value: Any) -> bool:
    return class_of(value) in (bool, int, float, complex, np.ndarray) or isinstance(value, np.generic)


class Flags:
    """Flags of numbers that were stored: some of them, or all, have another class in Python than their array."""

    def __init__(self) -> None:
        self.some, self.all = _zeros((), _BOOL), _zeros((), _BOOL)
        self.all.overwrite(require_current().constant(True, _BOOL))

    @property
    def arrays(self) -> list[TracedArray]:
        """Flags as arrays of the state of a loop."""
        return [self.some, self.all]

    def add(self, doubt: Doubt | None) -> None:
        """Add those of a number."""
        test = require_current().constant(False, _BOOL) if doubt is None else require_current().capture(doubt.test)
        self.some.overwrite(xla.or_(value_of(self.some), test))
        self.all.overwrite(xla.and_(value_of(self.all), test))


class Stacks:
    """An array for each leaf of the elements of a list.

    Parameters
    ----------
    leaves : sequence of TracedArray
        Leaves of an element.
    tree : Tree
        Structure of the elements.
    count : int
        Number of elements.
    """

    def __init__(self, leaves: Sequence[TracedArray], tree: Tree, count: int) -> None:
        self.elements = Elements(count, tree, tuple(map(leaf_of, leaves)))
        self._types = [(v.shape, v.dtype) for v in leaves]
        self._is_doubtful = [v.doubt is not None and not v.doubt.is_numpy for v in leaves]
        self.arrays: list[TracedArray] = []
        self.flags: list[Flags | None] = []
        self.stored: list[tuple[TracedArray, Any]] = []  # arrays that a pass has stored, with their values then
        self.stored_before: list[tuple[TracedArray, Any]] = []  # those of earlier elements in the pass
        self.before: list[Any] = []  # arrays that are elements before the loop

    def make(self) -> list[TracedArray]:
        """Make the arrays in the current trace."""
        self.arrays = [_zeros((self.elements.length, *shape), dtype) for shape, dtype in self._types]
        self.flags = [Flags() if is_doubtful else None for is_doubtful in self._is_doubtful]
        return [*self.arrays, *[a for flags in self.flags if flags is not None for a in flags.arrays]]

    def doubts(self) -> list[tuple[Doubt, Doubt] | None]:
        """Return for each array whether elements have other classes: some of them, and all."""
        return [
            None if f is None else (Doubt(value_of(f.some), False), Doubt(value_of(f.all), False)) for f in self.flags
        ]

    def note_doubts(self, leaves: Sequence[TracedArray]) -> None:
        """Note whether the numbers of an element have other classes."""
        for leaf, flags in zip(leaves, self.flags, strict=True):
            if flags is not None:
                flags.add(leaf.doubt)
            elif leaf.doubt is not None:
                leave(require_current(), leaf.doubt)

    def store(self, number: Any, value: Any) -> None:
        """Store an element.

        Raises
        ------
        TraceError
            The structure, a shape or a type differs from that of the others, or arrays share memory.
        """
        leaves = self._require_types(value)
        roots = [v.root for v in leaves if is_shared_array(v)]
        if len(set(map(id, roots))) < len(roots):
            raise TraceError("arrays in an element of the list share memory", where=user_line())
        self.stored = [(r, r.root_op) for r in roots]
        for array, leaf in zip(self.arrays, leaves, strict=True):
            array[number] = leaf
        self.note_doubts(leaves)

    @property
    def all_stored(self) -> list[tuple[TracedArray, Any]]:
        """Arrays that the pass has stored, with their values then."""
        return [*self.stored_before, *self.stored]

    def store_own(self, number: Any, value: Any) -> None:
        """Store an element of the iteration that is being recorded, whose arrays are made in it; see `store`."""
        self.store(number, value)
        if any(root.owner is not current() for root, _ in self.stored):
            raise TraceError("an element of the list shares memory with an array from outside", where=user_line())

    def _require_types(self, value: Any) -> list[Any]:
        """Return the leaves of an element that has the structure, shapes and types of the others."""
        leaves, tree = flatten(value)
        if tree != self.elements.tree or not self._have_types(leaves):
            raise TraceError("the elements of the list differ in structure, shape or type", where=user_line())
        return leaves

    def _have_types(self, leaves: Sequence[Any]) -> bool:
        return all(
            isinstance(v, TracedArray) and (v.shape, v.dtype) == kind and (v.ndim > 0 or leaf_of(v) == leaf)
            for v, kind, leaf in zip(leaves, self._types, self.elements.leaves, strict=True)
        )


class Growing(Stacks):
    """Arrays for the elements that iterations append, in some of them or several in each, with their number so far.

    Parameters
    ----------
    leaves : sequence of TracedArray
        Leaves of an appended element.
    tree : Tree
        Structure of the elements.
    values : StackedList
        List, which may have elements before the loop.

    Raises
    ------
    Unsuitable
        The list has elements that differ from the appended ones in structure, shape or type.
    """

    def __init__(self, leaves: Sequence[TracedArray], tree: Tree, values: StackedList) -> None:
        super().__init__(leaves, tree, 0)
        self.count = TracedArray(leaves[0].op)  # replaced by `make`
        self._stacks = values.stacks
        self._items = [] if values.stacks is not None else list(list.__iter__(values))
        stacks = [s.padded if isinstance(s, SizedArray) else s for s in values.stacks or ()]
        self.before = [leaf for v in (*self._items, *stacks) for leaf in flatten(v)[0]]
        if not self._has_own_types(values):
            raise Unsuitable("it appends to a list whose elements differ from the appended ones", _TYPE_HINT)
        self._before, self._appended = values.bound, 0
        self._is_limited = False

    def _has_own_types(self, values: StackedList) -> bool:
        """Return True if all elements before the loop are like those that the loop appends."""
        if self._stacks is None:
            return all(self._is_alike(with_traced_numbers(item)) for item in self._items)
        arrays = [s.padded if isinstance(s, SizedArray) else s for s in self._stacks]
        types = [(a.shape[1:], a.dtype) for a in arrays]
        return types == self._types and values.elements[1:] == self.elements[1:] and not any(values.doubts)

    def _is_alike(self, item: Any) -> bool:
        leaves, tree = flatten(item)
        return tree == self.elements.tree and self._have_types(leaves) and all(v.doubt is None for v in leaves)

    def _present(self) -> tuple[list[TracedArray], Any]:
        """Return the elements before the loop, if there are any, as arrays of the current trace; and their number."""
        if self._stacks is None:
            rows = [flatten(with_traced_numbers(item))[0] for item in self._items]
            return [as_traced(np.stack(column)) for column in zip(*rows, strict=True)], len(rows)
        sized = [s for s in self._stacks if isinstance(s, SizedArray)]
        arrays = [s.padded if isinstance(s, SizedArray) else s for s in self._stacks]
        return arrays, sized[0].counts[0] if sized else len(arrays[0])

    def make(self) -> list[TracedArray]:
        """Make the arrays in the current trace."""
        size = max(1, sum(prod(shape) * dtype.itemsize for shape, dtype in self._types))
        self._is_limited |= size * self._appended > MOST_BYTES
        if self._is_limited:
            self._appended = LIMITED_BYTES // size
        self.elements = self.elements._replace(length=self._before + self._appended)
        if not self._appended or size * self.elements.length > MOST_BYTES:
            raise Unsuitable("the list that it appends to may have too many elements", "use an array")
        made = super().make()
        present, count = self._present()
        for array, start in zip(self.arrays, present, strict=False):  # nothing is present in an empty list
            op = value_of(array)
            array.overwrite(xla.concatenate([value_of(start), xla.slice_in_dim(op, start.shape[0], len(array))], 0))
        self.count = TracedArray(value_of(as_traced(count, np.int64)), rank0=Rank0.ARRAY)
        return [*made, self.count]

    def expect(self, value: Any, times: int | None) -> None:
        """Learn that the loop appends a value up to a number of times; None for any."""
        self._require_types(value)
        self._appended += times or 0
        self._is_limited |= times is None

    def append(self, value: Any) -> None:
        """Store an element behind the others."""
        place: Any = TracedArray(value_of(self.count))
        self.stored_before += self.stored
        leaves = self._require_types(value)
        self.stored = [(v.root, v.root.root_op) for v in leaves if is_shared_array(v)]
        for array, leaf in zip(self.arrays, leaves, strict=True):
            array.overwrite(value_of(array.at[place].set(leaf, mode="unchecked")))
        self.note_doubts(leaves)
        self.count.overwrite(value_of(place + 1))

    def length(self) -> TracedArray:
        """Return the number of elements at this point of an iteration, which may be more than there is room for."""
        return TracedArray(value_of(self.count), int, rank0=Rank0.PYTHON)

    def has_room(self) -> XlaOp:
        """Return True unless an iteration has appended more elements than there is room for: the loop ends then."""
        return xla.le(value_of(self.count), self._bound())

    def as_list(self) -> StackedList:
        """Return a list of the elements at this point of an iteration."""
        self._is_limited = True  # a pass that learned too little may have found too small a bound
        made = StackedList(None, self.elements)
        made.become_sized(*self._elements(), self.doubts())
        return made

    def sized(self) -> tuple[list[SizedArray], Elements]:
        """Return the elements after the loop."""
        if self._is_limited:
            text = f"a list that a loop appends to has more than {self.elements.length} elements"
            error = UnimplementedError(text, where=user_line())
            require_current().leave_if(xla.gt(value_of(self.count), self._bound()), lambda _: error, warns=True)
        return self._elements()

    def _bound(self) -> XlaOp:
        return require_current().constant(self.elements.length, np.dtype(np.int64))

    def _elements(self) -> tuple[list[SizedArray], Elements]:
        number = value_of(self.count)
        number = xla.minimum(number, self._bound()) if self._is_limited else number
        count = size_array(number, self.elements.length)
        return [SizedArray(a, {0: count}) for a in self.arrays], self.elements._replace(length=RUN_TIME)


def _zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> TracedArray:
    zero = require_current().constant(np.zeros((), dtype))
    return TracedArray(xla.broadcast(zero, shape), rank0=Rank0.ARRAY)


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
            share(root, others, "an element of a list", "a loop that appends to it")
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
