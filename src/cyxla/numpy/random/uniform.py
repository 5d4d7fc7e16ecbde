"""Uniform distributions of integers and floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.numpy.random.random_words import Array, Source, as_float64, float_type, require, sizes_of, to_out
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced

_U64 = np.dtype(np.uint64)
_U64_MAX = 2**64 - 1


class Uniform(Source):
    """Methods of a generator for uniform distributions."""

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Array:
        """Draw numbers in [0, 1)."""
        sizes = out.shape if size is None and out is not None else sizes_of(size, np.zeros(()))
        return to_out(self.unit(sizes, float_type(dtype, "random")), out)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Array:
        """Draw numbers in [low, high)."""
        a, b = as_float64(low), as_float64(high)
        if not isinstance(low, TracedArray) and not isinstance(high, TracedArray):
            if not np.all(np.isfinite(np.subtract(high, low, dtype=np.float64))):
                raise OverflowError("Range exceeds valid bounds")
            require(np.subtract(high, low, dtype=np.float64), lambda r: r >= 0, "low > high")
        return a + (b - a) * self.unit(sizes_of(size, a, b))

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Array:
        """Draw integers from `low` to `high`, which is excluded unless `endpoint` is set."""
        if high is None:
            low, high = 0, low
        result_dtype = np.dtype(dtype)
        if result_dtype.kind not in "biu":
            raise TypeError(f"Unsupported dtype {result_dtype!r} for integers")
        if not isinstance(low, TracedArray) and not isinstance(high, TracedArray):
            return self._integers_known(np.asarray(low), np.asarray(high), size, result_dtype, endpoint)
        return self._integers_traced(as_traced(low), as_traced(high), size, result_dtype, endpoint)

    def _integers_known(self, low: Any, high: Any, size: Any, dtype: np.dtype[Any], endpoint: bool) -> Array:
        lowest, greatest = _limits(dtype)
        first, last = _to_python_integers(low), _to_python_integers(high) - (0 if endpoint else 1)
        if np.any(first < lowest):
            raise ValueError(f"low is out of bounds for {dtype.name}")
        if np.any(last > greatest):
            raise ValueError(f"high is out of bounds for {dtype.name}")
        if np.any(first > last):
            raise ValueError("low > high" if endpoint else "low >= high")
        span, start = (np.asarray(v, object).astype(_U64) for v in (last - first, first % 2**64))
        sizes = sizes_of(size, start, span)
        if span.size and np.all(span == span.reshape(-1)[0]):
            offsets = self._draw_up_to(sizes, int(span.reshape(-1)[0]))
        else:
            offsets = self._draw_up_to_traced(sizes, as_traced(span))
        return _convert_to(offsets + start, dtype)

    def _draw_up_to(self, sizes: tuple[int, ...], greatest: int) -> Array:
        """Draw integers from 0 to a known `greatest`: masked bits, or the high word of an unbiased product (Lemire)."""
        count = greatest + 1
        if count & greatest == 0:
            bits = greatest.bit_length()
            word = np.dtype(np.uint32 if bits <= 32 else np.uint64)
            return (self.words(sizes, word) & word.type(greatest)).astype(_U64)
        if greatest >= 2**32:
            return self._draw_up_to_traced(sizes, as_traced(np.uint64(greatest)))
        bias_limit = np.uint64(2**32 % count)

        def propose(source: Source) -> tuple[Array, Array]:
            product = source.words(sizes, np.uint32).astype(_U64) * np.uint64(count)
            return product >> np.uint64(32), (product & np.uint64(2**32 - 1)) >= bias_limit

        return self.sample_by_rejection(sizes, _U64, propose)

    def _draw_up_to_traced(self, sizes: tuple[int, ...], greatest: Array) -> Array:
        """Draw integers from 0 to `greatest`, of 64 bits: remainders of words, without the incomplete last range."""
        count = greatest + np.uint64(1)  # 0 stands for 2**64
        divisor = np.where(count == 0, np.uint64(1), count)
        surplus = (np.uint64(0) - count) % divisor

        def propose(source: Source) -> tuple[Array, Array]:
            word = source.words(sizes)
            return np.where(count == 0, word, word % divisor), word <= np.uint64(_U64_MAX) - surplus

        return self.sample_by_rejection(sizes, _U64, propose)

    def _integers_traced(self, low: Array, high: Array, size: Any, dtype: np.dtype[Any], endpoint: bool) -> Array:
        for bound in (low, high):
            if bound.dtype.kind not in "biu":
                raise TypeError(f"integers: traced bounds must be integers, not {bound.dtype}")
        signed = dtype.kind != "u" or dtype.itemsize < 8
        a, b = (v.astype(np.int64 if signed else np.uint64) for v in (low, high))
        one = b.dtype.type(1)
        valid = a <= b if endpoint else a < b
        require(valid, lambda ok: ok, "low > high" if endpoint else "low >= high")
        last = b if endpoint else b - one
        lowest, greatest = _limits(dtype)
        if signed and dtype != np.int64:
            require(a, lambda v: v >= lowest, f"low is out of bounds for {dtype.name}")
            require(last, lambda v: v <= greatest, f"high is out of bounds for {dtype.name}")
        span = (last - a).astype(_U64)
        offsets = self._draw_up_to_traced(sizes_of(size, a, b), np.where(valid, span, np.uint64(0)))
        return _convert_to(offsets + a.astype(_U64), dtype)


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    if dtype.kind == "b":
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _to_python_integers(x: Any) -> Any:
    """Convert bounds to Python integers, which do not overflow; floats are truncated as by NumPy."""
    if x.dtype.kind == "f":
        x = np.trunc(x)
    return np.array([int(v) for v in x.reshape(-1)], object).reshape(x.shape)


def _convert_to(x: Array, dtype: np.dtype[Any]) -> Array:
    return (x != 0) if dtype.kind == "b" else x.astype(dtype)
