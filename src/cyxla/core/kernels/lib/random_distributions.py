"""Categorical draws, and arrays of samples with parameters."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from cyxla.core.kernels.lib import philox
from cyxla.core.kernels.lib.philox import Philox
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]
Draw = Callable[[Philox, int, "np.dtype[Any]"], Array]


def check_categorical(logits: Array, num_samples: Array) -> tuple[Array, int]:
    """Check the operands of a categorical draw and return them.

    Raises
    ------
    ShapeError
        The logits are not a matrix, or the number of samples is not a scalar.
    InvalidArgumentError
        There are no classes, or the number of samples is negative.
    """
    if logits.ndim != 2:
        raise ShapeError(f"logits must be a matrix of rows of classes; their shape is {list(logits.shape)}")
    if num_samples.ndim:
        raise ShapeError(f"num_samples must be a scalar; its shape is {list(num_samples.shape)}")
    if num_samples < 0:
        raise InvalidArgumentError(f"num_samples must not be negative; it is {num_samples}")
    if not logits.shape[1]:
        raise InvalidArgumentError("no classes to sample from: logits have no columns")
    return logits, int(num_samples)


def categorical(generator: Philox, logits: Array, count: int) -> Array:
    """Draw classes s64[rows, count] by searching uniform numbers in the cumulative probabilities."""
    rows = logits.shape[0]
    words = generator.blocks(-(-rows * count * 2 // 4)).reshape(-1, 2)[: rows * count]
    numbers = philox.float64_of(words).reshape(rows, count)
    samples = np.empty((rows, count), np.int64)
    for row, (values, points) in enumerate(zip(logits, numbers, strict=True)):
        wide = values.astype(np.float64)
        finite = np.isfinite(wide)
        top = wide[finite].max() if finite.any() else 0.0
        totals = np.cumsum(np.where(finite, np.exp(np.where(finite, wide, top) - top), 0.0))
        samples[row] = np.searchsorted(totals, points * totals[-1], side="right")
    return samples


def repeat_parameters(count: int, parameters: Array) -> Array:
    """Repeat each parameter `count` times: f64[parameters * count]."""
    return np.repeat(parameters.reshape(-1).astype(np.float64), count)


def reshape_samples(samples: Array, sizes: tuple[int, ...], parameters: Array, dtype: np.dtype[Any]) -> Array:
    """Reshape samples in parameter-major order to [*sizes, *parameters]; NaN becomes 0 in integers."""
    grid = samples.reshape(parameters.size, prod(sizes)).T.reshape(*sizes, *parameters.shape)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        grid = np.clip(np.nan_to_num(grid, nan=0.0), float(info.min), float(info.max))
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(grid).astype(dtype)
