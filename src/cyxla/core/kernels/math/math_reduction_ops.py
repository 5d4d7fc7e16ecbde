"""Reductions over dimensions, and scans along one."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.shape_operands import axes_of
from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.numeric_limits import is_integer, wide_type
from cyxla.core.framework.types import FLOATING, NUMBER, QUANTIZED, REAL, DataType, as_data_type
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]
Reduce = Callable[[Array, tuple[int, ...], bool], Array]

_BOOL = as_data_type("bool")


def _sum(x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
    return x.sum(axis=axes, keepdims=keep_dims, dtype=wide_type(x.dtype))


def _product(x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
    return x.prod(axis=axes, keepdims=keep_dims, dtype=wide_type(x.dtype))


def _mean(x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
    """Return the mean; integer means are rounded towards zero, and are 0 without elements."""
    count = prod(x.shape[d] for d in axes)
    total = _sum(x, axes, keep_dims)
    if not is_integer(x.dtype):
        return np.asarray(total / np.asarray(count, total.dtype))
    if not count:
        return np.zeros_like(total)
    quotient = np.floor_divide(np.abs(total), np.asarray(count, total.dtype))
    return np.asarray(np.where(total < 0, -quotient, quotient)) if x.dtype.kind == "i" else quotient


def _extremum(method: str, empty: float) -> Reduce:
    """Make a NaN-propagating maximum or minimum; without elements it is infinite, or the limit of the integer type."""

    def reduce(x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
        wide = x if is_integer(x.dtype) or x.dtype.kind == "f" else x.astype(wide_type(x.dtype))
        start: Any = empty
        if is_integer(x.dtype):
            start = np.iinfo(x.dtype).max if empty > 0 else np.iinfo(x.dtype).min
        result = getattr(wide, method)(axis=axes, keepdims=keep_dims, initial=start)
        return np.asarray(result)

    return reduce


def _norm(x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
    wide = x.astype(wide_type(x.dtype))
    squares = (wide * wide.conj()).real if wide.dtype.kind == "c" else wide * wide
    return np.sqrt(squares.sum(axis=axes, keepdims=keep_dims, dtype=squares.dtype))


def _all(x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
    return np.asarray(x.all(axis=axes, keepdims=keep_dims))


def _any(x: Array, axes: tuple[int, ...], keep_dims: bool) -> Array:
    return np.asarray(x.any(axis=axes, keepdims=keep_dims))


# fmt: off
_REDUCTIONS: tuple[tuple[str, Reduce, tuple[DataType, ...] | None], ...] = (
    ("Sum",           _sum,                    NUMBER),
    ("Prod",          _product,                NUMBER),
    ("Mean",          _mean,                   NUMBER),
    ("Max",           _extremum("max", -np.inf), REAL + QUANTIZED),
    ("Min",           _extremum("min", np.inf), REAL + QUANTIZED),
    ("EuclideanNorm", _norm,                   NUMBER),
    ("All",           _all,                    None),
    ("Any",           _any,                    None),
)
# fmt: on


def _register(name: str, reduce: Reduce, types: tuple[DataType, ...] | None) -> None:
    @array_kernel(name, attrs=("keep_dims",), types=None if types is None else {"T": types})
    def kernel(x: Array, reduction_indices: Array, *, keep_dims: bool) -> Array:
        axes = axes_of(reduction_indices, x.ndim)
        if not axes:
            return x
        with np.errstate(all="ignore"):
            return np.asarray(reduce(x, axes, keep_dims)).astype(x.dtype, copy=False)


for _row in _REDUCTIONS:
    _register(*_row)


# ------------------------------------------------------------------------------------------------- where an extreme is


def _axis_of(operand: Array, rank: int, name: str) -> int:
    if operand.ndim:
        raise ShapeError(f"{name} must be a scalar; its shape is {list(operand.shape)}")
    if not -rank <= operand < rank:
        raise InvalidArgumentError(f"{name} {operand} of an input of rank {rank}: [{-rank}, {rank}) exist")
    return int(operand) % rank


def _register_arg_reduction(name: str, function: Callable[..., Array], worst: float) -> None:
    @array_kernel(name, attrs=("output_type",), types={"T": (*REAL, *QUANTIZED, _BOOL)})
    def kernel(x: Array, dimension: Array, *, output_type: DataType) -> Array:
        """Return the index of the first maximum or minimum, ignoring NaN."""
        axis = _axis_of(dimension, x.ndim, "dimension")
        if not x.shape[axis]:
            raise InvalidArgumentError(f"dimension {axis} of {list(x.shape)} is empty: no element is the greatest")
        if not is_integer(x.dtype) and x.dtype != np.bool_:
            wide = x.astype(wide_type(x.dtype))
            x = np.where(np.isnan(wide), worst, wide)
        return function(x, axis=axis).astype(output_type.numpy)


_register_arg_reduction("ArgMax", np.argmax, -np.inf)
_register_arg_reduction("ArgMin", np.argmin, np.inf)


# --------------------------------------------------------------------------------------------------- running totals


def _register_scan(name: str, scan: Callable[[Array, int], Array], start: float, types: tuple[DataType, ...]) -> None:
    @array_kernel(name, attrs=("exclusive", "reverse"), types={"T": types})
    def kernel(x: Array, axis: Array, *, exclusive: bool, reverse: bool) -> Array:
        along = _axis_of(axis, x.ndim, "axis")
        if not x.size:
            return x
        scanned = np.moveaxis(x.astype(wide_type(x.dtype)), along, 0)
        scanned = scanned[::-1] if reverse else scanned
        with np.errstate(all="ignore"):
            total = scan(scanned, 0)
        if exclusive:
            total = np.concatenate([np.full_like(total[:1], start), total[:-1]])
        total = total[::-1] if reverse else total
        return np.ascontiguousarray(np.moveaxis(total, 0, along)).astype(x.dtype, copy=False)


def _cumsum(x: Array, axis: int) -> Array:
    return np.cumsum(x, axis=axis, dtype=x.dtype)


def _cumprod(x: Array, axis: int) -> Array:
    return np.cumprod(x, axis=axis, dtype=x.dtype)


_register_scan("Cumsum", _cumsum, 0, NUMBER)
_register_scan("Cumprod", _cumprod, 1, NUMBER)
_register_scan(
    "CumulativeLogsumexp", lambda x, axis: np.asarray(np.logaddexp.accumulate(x, axis=axis)), -np.inf, FLOATING
)
