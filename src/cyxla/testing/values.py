"""Arrays with special values: NaN, infinities, signed zeros, denormals, extreme integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from cyxla.types import ElementType, Shape

Array: TypeAlias = npt.NDArray[Any]

FLOATS: Final = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, 100.0, np.inf, -np.inf, np.nan]


def special_values(dtype: ElementType) -> Array:
    """Return an array of the special values of a type."""
    kind: np.dtype[Any] = dtype.numpy_dtype  # type: ignore[assignment]  # an array type
    if dtype is ElementType.PRED:
        return np.array([False, True])
    if dtype.is_integer:
        low, high = integer_range(dtype)
        values = [v for v in (0, 1, 2, 3, 7, -1, -2, low, low + 1, high - 1, high, dtype.bits) if low <= v <= high]
        return np.array(values, object).astype(np.int64 if low < 0 else np.uint64).astype(kind)
    with np.errstate(all="ignore"):
        if dtype.is_complex:
            parts = special_values(dtype.real_part)[:9]
            return np.array([complex(a, b) for a in parts for b in parts]).astype(kind)
        bits = np.array([1, 2], f"u{kind.itemsize}").view(kind)  # the smallest denormals
        large = (
            np.array([np.finfo(np.float64).max]).astype(kind)
            if dtype is ElementType.F64
            else np.array([60000.0, 3e38]).astype(kind)
        )
        return np.concatenate([np.array(FLOATS).astype(kind), bits, large])


def integer_range(dtype: ElementType) -> tuple[int, int]:
    """Return the smallest and the largest integer of a type."""
    return (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1) if dtype.is_signed else (0, 2**dtype.bits - 1)


def random_array(shape: Shape, seed: int, special: float = 0.3) -> Array:
    """Return an array of ordinary values, a fraction `special` of which is replaced by special ones."""
    rng = np.random.default_rng(seed)
    dtype, dims = shape.dtype, shape.dims
    plain = ordinary(dtype, dims, rng)
    nasty = special_values(dtype)
    chosen = nasty[rng.integers(0, len(nasty), dims)]
    mixed: Array = np.where(rng.random(dims) < special, chosen, plain)
    return mixed.astype(nasty.dtype).reshape(dims)


def ordinary(dtype: ElementType, dims: Sequence[int], rng: np.random.Generator) -> Array:
    """Return random values of moderate size."""
    kind: np.dtype[Any] = dtype.numpy_dtype  # type: ignore[assignment]  # an array type
    if dtype is ElementType.PRED:
        return np.asarray(rng.random(dims) < 0.5)
    if dtype.is_integer:
        low, high = integer_range(dtype)
        return rng.integers(max(low, -50), min(high, 50), dims, endpoint=True).astype(kind)
    values = rng.standard_normal(dims) * 2
    with np.errstate(all="ignore"):
        return (
            (values + 1j * rng.standard_normal(dims)).astype(kind)
            if dtype.is_complex
            else np.asarray(values).astype(kind)
        )
