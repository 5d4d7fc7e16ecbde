"""Permutations and samples."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cyxla.numpy.random.random_words import Array, as_float64, require, sizes_of, to_out
from cyxla.numpy.random.uniform import Uniform
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced


class Selection(Uniform):
    """Methods of a generator for permutations and samples; permutations are argsorts of random 64-bit words."""

    def _random_order(self, count: int) -> Array:
        return np.argsort(self.words((count,)), kind="stable")

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """Return a copy permuted along an axis, or for an integer a permuted range."""
        if not isinstance(x, TracedArray) and isinstance(x, (int, np.integer)):
            return self._random_order(index(x))
        array: Array = as_traced(x)
        if array.ndim == 0:
            raise np.exceptions.AxisError(axis, 0)
        axis_ = normalize_axis_index(axis, array.ndim)
        return np.take(array, self._random_order(array.shape[axis_]), axis=axis_)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Permute along an axis in place."""
        if not isinstance(x, TracedArray):
            raise TypeError(f"shuffle: x must be a traced array, not a {type(x).__name__}; permutation returns a copy")
        if x.ndim == 0:
            raise TypeError("shuffle: x must have at least one dimension")
        target: Array = x
        target[...] = self.permutation(x, axis)

    def permuted(self, x: Any, *, axis: Any = None, out: Any = None) -> Array:
        """Permute the lines along an axis independently; all elements if `axis` is None."""
        array: Array = as_traced(x)
        if axis is None:
            result = np.reshape(np.ravel(array)[self._random_order(array.size)], array.shape)
        else:
            axis_ = normalize_axis_index(axis, array.ndim)
            result = np.take_along_axis(
                array, np.argsort(self.words(array.shape), axis=axis_, kind="stable"), axis=axis_
            )
        if out is x and isinstance(x, TracedArray):
            array[...] = result
            return array
        return to_out(result, out)

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Array:
        """Sample elements of an array along an axis, or of a range, uniformly or with probabilities `p`."""
        array: Array = None if _is_count(a) else as_traced(a)
        if array is not None and array.ndim == 0:
            raise ValueError("a must be a sequence or an integer, not a traced number")
        axis_ = 0 if array is None else normalize_axis_index(axis, array.ndim)
        count = _count(a) if array is None else array.shape[axis_]
        sizes = sizes_of(size, np.zeros(()))
        if count <= 0 and prod(sizes):
            raise ValueError("a cannot be empty unless no samples are taken")
        if p is not None:
            _check_probabilities(p, count)
        if replace:
            indices = (
                self.integers(0, max(count, 1), sizes) if p is None else self._sample_weighted(as_float64(p), sizes)
            )
        else:
            if prod(sizes) > count:
                raise ValueError("Cannot take a larger sample than population when replace is False")
            indices = np.reshape(self._sample_without_replacement(p, count, prod(sizes)), sizes)
        return indices if array is None else np.take(array, indices, axis=axis_)

    def _sample_weighted(self, p: Array, sizes: tuple[int, ...]) -> Array:
        sums = np.cumsum(p)
        return np.searchsorted(sums / sums[-1], self.unit(sizes), side="right")

    def _sample_without_replacement(self, p: Any, count: int, sample_size: int) -> Array:
        """Sample without replacement: the head of a permutation, or with weights the least exponential variates."""
        if p is None:
            return self._random_order(count)[:sample_size]
        require(p, lambda v: np.sum(v > 0) >= sample_size, "Fewer non-zero entries in p than size")
        waits = -np.log(self.positive((count,))) / as_float64(p)
        return np.argsort(waits, kind="stable")[:sample_size]


def _is_count(a: Any) -> bool:
    return not isinstance(a, TracedArray) and np.ndim(a) == 0


def _count(a: Any) -> int:
    try:
        return index(a)
    except TypeError as error:
        raise ValueError(f"a must be a sequence or an integer, not {type(a)}") from error


def _check_probabilities(p: Any, count: int) -> None:
    if np.ndim(p) != 1 or np.shape(p)[0] != count:
        raise ValueError("a and p must have same size" if np.ndim(p) == 1 else "p must be 1-dimensional")
    require(p, lambda v: v >= 0, "Probabilities are not non-negative")
    require(p, lambda v: abs(np.sum(v) - 1.0) <= 1.5e-8, "Probabilities do not sum to 1.")
