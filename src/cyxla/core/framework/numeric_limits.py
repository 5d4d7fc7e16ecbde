"""Limits of the range of each element type."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np


def lowest(dtype: np.dtype[Any]) -> Any:
    """Return the smallest finite value, as a scalar of the type."""
    return np.asarray(_info(dtype).min).astype(dtype)[()]


def highest(dtype: np.dtype[Any]) -> Any:
    """Return the largest finite value, as a scalar of the type."""
    return np.asarray(_info(dtype).max).astype(dtype)[()]


def _info(dtype: np.dtype[Any]) -> Any:
    about: Any = ml_dtypes
    return about.iinfo(dtype) if is_integer(dtype) else about.finfo(dtype)


def is_integer(dtype: np.dtype[Any]) -> bool:
    """Return True for integer types, those of four and two bits included, and False for bool."""
    return dtype.kind in "iu" or "int" in dtype.name


def wide_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of accumulators: f32 for narrower floats, the type itself otherwise."""
    return np.dtype(np.float32) if dtype.itemsize < 4 and not is_integer(dtype) and dtype.kind in "fV" else dtype
