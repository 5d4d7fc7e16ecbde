"""Arrays for the elements that iterations append to a list: in some of them, or several in each."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.numpy.rewriting.loops.plans import Unsuitable, is_shared_array
from cyxla.numpy.rewriting.loops.stacks import Stacks, with_traced_numbers
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, size_array
from cyxla.numpy.tracing.arrays.stacked_list import RUN_TIME, Elements, StackedList
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.containers import Tree, flatten
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

MOST_BYTES: Final = 1 << 28  # of the arrays for a list of run-time length
LIMITED_BYTES: Final = 1 << 20  # of those for a list that may have more elements, or any number: NumPy runs if it has

_TYPE_HINT = "give all elements one class, shape and dtype"


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
