"""Arrays that the sides of a branch, or the iterations of a loop, leave with different sizes or bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.numpy.sized.frames import resized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, size_array
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, value_of
from cyxla.numpy.tracing.trace import require_current
from cyxla.xla.hlo.builder import XlaOp


class Sizes:
    """Sizes of an array after a branch.

    Attributes
    ----------
    bounds : list of int
        Greatest size of each dimension.
    dims : list of int
        Dimensions whose size depends on the run.
    """

    def __init__(self, bounds: list[int], dims: list[int]) -> None:
        self.bounds, self.dims = bounds, dims

    @staticmethod
    def of(one: Any, other: Any) -> Sizes | None:
        """Return the sizes of an array that is one of two; None unless they are arrays of one dtype and other sizes."""
        values = (one, other)
        if not all(isinstance(v, (SizedArray, TracedArray, np.ndarray)) and v.ndim for v in values):
            return None
        shapes = [v.padded.shape if isinstance(v, SizedArray) else v.shape for v in values]
        counted = [v.run_time_dims if isinstance(v, SizedArray) else () for v in values]
        if one is other or len(shapes[0]) != len(shapes[1]) or one.dtype != other.dtype:
            return None
        if shapes[0] == shapes[1] and counted[0] == counted[1] and (type(one) is type(other) or not counted[0]):
            return None
        bounds = [max(n, m) for n, m in zip(*shapes, strict=True)]
        dims = [d for d, (n, m) in enumerate(zip(*shapes, strict=True)) if n != m or any(d in c for c in counted)]
        return Sizes(bounds, dims)

    def resize(self, value: Any, ops: Sequence[XlaOp]) -> SizedArray:
        """Return an array as one of these sizes, of its own memory.

        Parameters
        ----------
        value : array
            Array.
        ops : sequence of XlaOp
            Values of its elements and of its run-time sizes.
        """
        data, known = TracedArray(ops[0]), require_current().constant
        counts = dict(zip(value.run_time_dims, ops[1:], strict=True)) if isinstance(value, SizedArray) else {}
        for d in self.dims:
            if d not in counts:
                counts[d] = known(data.shape[d], np.dtype(np.int64))
            data = resized(data, d, self.bounds[d])
        return SizedArray(data, {d: size_array(count, self.bounds[d]) for d, count in counts.items()})


def with_bounds_of(value: Any, before: Any) -> Any:
    """Return an array of run-time size with the bounds of another one, if they are greater; else the value itself.

    A variable that loses elements in each iteration of a loop has less room after it than before.
    """
    if not (isinstance(value, SizedArray) and isinstance(before, SizedArray)):
        return value
    data, bounds, dims = value.padded, before.padded.shape, value.run_time_dims
    if dims != before.run_time_dims or data.ndim != len(bounds) or data.shape == bounds:
        return value
    if any(n > m or (n != m and d not in dims) for d, (n, m) in enumerate(zip(data.shape, bounds, strict=True))):
        return value
    return Sizes(list(bounds), list(dims)).resize(value, [value_of(data), *map(value_of, value.counts.values())])
