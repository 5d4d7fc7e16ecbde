"""Arrays in which the iterations of a loop of the program store the elements of a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.rewriting.loops.plans import is_shared_array
from cyxla.numpy.tracing.arrays.number_storage import leaf_of
from cyxla.numpy.tracing.arrays.stacked_list import Elements
from cyxla.numpy.tracing.arrays.traced_array import Doubt, TracedArray, as_traced, value_of
from cyxla.numpy.tracing.containers import Tree, flatten
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import current, require_current, user_line
from cyxla.numpy.tracing.user_program.classes import class_of
from cyxla.numpy.tracing.user_program.doubts import leave
from cyxla.xla.hlo.builder import functions as xla

_BOOL: Final = np.dtype(bool)


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


def _zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> TracedArray:
    zero = require_current().constant(np.zeros((), dtype))
    return TracedArray(xla.broadcast(zero, shape), rank0=Rank0.ARRAY)
