"""Slices of arrays that a loop takes, and slices of results that it stacks, also of run-time size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cyxla.errors import TraceError
from cyxla.numpy.control.lengths import Length, hoisted
from cyxla.numpy.tracing.arrays.run_time_sizes import (
    elements_of,
    flatten_arrays,
    inserted,
    of_sizes,
    removed,
    resized,
    sizes_of,
)
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, size_array
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, traced
from cyxla.numpy.tracing.bodies import Body
from cyxla.numpy.tracing.containers import Tree
from cyxla.numpy.tracing.trace import user_line
from cyxla.records import dataclass
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp


@dataclass(frozen=True)
class Slices:
    """Arrays that a loop slices.

    Attributes
    ----------
    arrays : list of TracedArray
        Padded elements, with the bound of the trip count as first size.
    sizes : list of dict
        Run-time sizes of a slice of each of them, by dimension.
    tree : Tree
        Structure of their container.
    """

    arrays: list[TracedArray]
    sizes: list[dict[int, Any]]
    tree: Tree

    @staticmethod
    def of(xs: Any, length: Length) -> Slices:
        """Return the arrays of a container."""
        leaves, tree = flatten_arrays(xs)
        arrays = [resized(as_traced(elements_of(x)), 0, length.bound) for x in leaves]
        return Slices(arrays, [removed(sizes_of(x), 0) for x in leaves], tree)

    @property
    def shapes(self) -> list[Shape]:
        """Shapes of the padded slices."""
        return [a.aval.static.with_dims(a.shape[1:]) for a in self.arrays]

    def build(self, parts: Sequence[Any]) -> Any:
        """Build the container of slices."""
        return self.tree.build([of_sizes(part, sizes) for part, sizes in zip(parts, self.sizes, strict=True)])


@dataclass(frozen=True)
class Stacked:
    """Results that a loop stacks, in which an array of run-time size is its elements, then its sizes.

    Attributes
    ----------
    leaves : list
        Results of an iteration.
    first : int
        Position of the first of them among the results of the body.
    length : Length
        Trip count.
    """

    leaves: list[Any]
    first: int
    length: Length

    def _positions(self) -> list[tuple[int, tuple[int, ...]]]:
        """Return the position of the elements of each result, and the dimensions whose sizes follow them."""
        found, position = [], self.first
        for leaf in self.leaves:
            dims = leaf.run_time_dims if isinstance(leaf, SizedArray) else ()
            found.append((position, dims))
            position += 1 + len(dims)
        return found

    @property
    def kept(self) -> list[int]:
        """Positions of the results of the body that the loop carries or stacks."""
        return [*range(self.first), *[position for position, _ in self._positions()]]

    def sizes(self, caller: str, name: str, body: Body) -> list[XlaOp]:
        """Return the sizes of all results, which must be those of all iterations."""
        found = [body.results[p + k] for p, dims in self._positions() for k in range(1, len(dims) + 1)]
        sizes = hoisted(body, found)
        if sizes is None:
            raise TraceError(
                f"{caller}: a result of {name} may have another size in each iteration, so that they cannot be stacked",
                where=user_line(), hint="reduce it to an array of known size, or use np.where instead of a selection",
            )  # fmt: skip
        return sizes

    def arrays(self, values: Sequence[XlaOp], sizes: Sequence[XlaOp]) -> list[Any]:
        """Return the stacked results."""
        remaining, stacked = iter(sizes), []
        for value, (_, dims) in zip(values, self._positions(), strict=True):
            counts = {d: size_array(next(remaining), value.shape.dims[1 + d]) for d in dims}
            stacked.append(of_sizes(traced(value), inserted(counts, 0, self.length.count)))
        return stacked
