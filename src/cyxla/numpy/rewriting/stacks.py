"""Arrays in which the iterations of a loop of the program store the elements of a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.rewriting.plans import Unsuitable, is_shared_array
from cyxla.numpy.tracing.classes import class_of
from cyxla.numpy.tracing.containers import Tree, flatten
from cyxla.numpy.tracing.stacked_list import Elements, StackedList, leaf_of, structure_of
from cyxla.numpy.tracing.trace import current, require_current, user_line
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced
from cyxla.numpy.tracing.zero_dim import Rank0
from cyxla.xla.hlo.builder import functions as xla


def with_traced_numbers(value: Any) -> Any:
    """Return an element with its known numbers and arrays as traced ones."""
    leaves, tree = flatten(value)
    if all(isinstance(v, TracedArray) and v.known is None for v in leaves):
        return value
    return tree.build([as_traced(v) if _is_known_number(v) else v for v in leaves])


def _is_known_number(value: Any) -> bool:
    return class_of(value) in (bool, int, float, complex, np.ndarray) or isinstance(value, np.generic)


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
        self.arrays: list[TracedArray] = []
        self.stored: list[tuple[TracedArray, Any]] = []  # arrays that a pass has stored, with their values then

    def make(self) -> list[TracedArray]:
        """Make the arrays in the current trace."""
        self.arrays = [_zeros((self.elements.length, *shape), dtype) for shape, dtype in self._types]
        return self.arrays

    def store(self, number: Any, value: Any) -> None:
        """Store an element.

        Raises
        ------
        TraceError
            The structure, a shape or a type differs from that of the others, or arrays share memory.
        """
        leaves, tree = flatten(value)
        if tree != self.elements.tree or not self._have_types(leaves):
            raise TraceError("the elements of the list differ in structure, shape or type", where=user_line())
        roots = [v.root for v in leaves if is_shared_array(v)]
        if len(set(map(id, roots))) < len(roots):
            raise TraceError("arrays in an element of the list share memory", where=user_line())
        self.stored = [(r, r.op) for r in roots]
        for array, leaf in zip(self.arrays, leaves, strict=True):
            array[number] = leaf

    def store_own(self, number: Any, value: Any) -> None:
        """Store an element of the iteration that is being recorded, whose arrays are made in it; see `store`."""
        self.store(number, value)
        if any(root.owner is not current() for root, _ in self.stored):
            raise TraceError("an element of the list shares memory with an array from outside", where=user_line())

    def _have_types(self, leaves: Sequence[Any]) -> bool:
        return all(
            isinstance(v, TracedArray) and (v.shape, v.dtype) == kind and (v.ndim > 0 or leaf_of(v) == leaf)
            for v, kind, leaf in zip(leaves, self._types, self.elements.leaves, strict=True)
        )


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
        self._new: list[Stacks] = []

    def __bool__(self) -> bool:
        return bool(self._stacks)

    def add(self, values: StackedList, value: Any, number: Any, count: int) -> None:
        """Record that an iteration appends a value; the first pass only learns its type.

        Raises
        ------
        Unsuitable
            The value cannot be an element of an array.
        """
        if id(values) in self._stacks:
            self._stacks[id(values)][1].store_own(number, value)
            return
        structure = structure_of(value)
        if structure is None:
            raise Unsuitable("it appends values to a list that are not all traced")
        stacks = Stacks(*structure, count)
        self._stacks[id(values)] = values, stacks
        self._new.append(stacks)

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
        stored = [pair for _, stacks in self._stacks.values() for pair in stacks.stored]
        is_written = any(root.op is not value for root, value in before)
        carried = {id(r) for r, _ in before} | {id(r) for r in roots_of(after)}
        if any(root.op is not value or (is_written and id(root) in carried) for root, value in stored):
            raise Unsuitable("it writes to an array that it appends to a list")

    def guard(self, is_guarded: bool) -> None:
        """Refuse all uses of the lists while an iteration is recorded, in which they lack elements."""
        for values, _ in self._stacks.values():
            values.is_guarded = is_guarded

    def finish(self) -> None:
        """Append the elements of the loop of the program to the lists."""
        for values, stacks in self._stacks.values():
            values.append_all(stacks.arrays, stacks.elements)
