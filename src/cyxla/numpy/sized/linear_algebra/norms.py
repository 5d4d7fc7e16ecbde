"""Norms of vectors and matrices of run-time size."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from cyxla.numpy.sized.linear_algebra.equations import flag_of, squares
from cyxla.numpy.sized.linear_algebra.padding import real_of
from cyxla.numpy.sized.linear_algebra.singular_values import singular_values_of
from cyxla.numpy.sized.table import sized
from cyxla.numpy.tracing.arrays.sized_array import is_sized, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import is_traced

_np: Any = np  # its functions dispatch to this package


@sized(np.linalg.norm)
def norm(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute norms of vectors, or of matrices, along dimensions."""
    x, order, axis = arguments["x"], arguments.get("ord"), arguments.get("axis")
    keepdims = flag_of(arguments, "keepdims")
    _refuse_sized_order(order)
    array = x if x.dtype.kind in "fc" else x.astype(np.float64)
    if axis is None:
        axes = tuple(range(array.ndim))
        if order is None or (order in ("f", "fro") and array.ndim == 2):
            return _vector_norms(array, None, axes, keepdims)
    else:
        axes = axis if isinstance(axis, tuple) else (_as_axis(axis),)
    if len(axes) == 1:
        return _vector_norms(array, order, axes, keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    row, column = (int(np.lib.array_utils.normalize_axis_index(d, array.ndim)) for d in axes)
    if row == column:
        raise ValueError("Duplicate axes given.")
    result = _matrix_norms(array, order, row, column)
    return _np.expand_dims(result, tuple(sorted((row, column)))) if keepdims else result


def _as_axis(axis: Any) -> int:
    try:
        return int(axis)
    except TypeError as error:
        raise TypeError("'axis' must be None, an integer or a tuple of integers") from error


def _refuse_sized_order(order: Any) -> None:
    if is_sized(order) or is_traced(order):
        raise_unsupported("be passed to np.linalg.norm with an order that is traced", "use np.abs, **, and np.sum")


@sized(np.linalg.vector_norm)
def vector_norm(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute norms of vectors along dimensions, by default all."""
    x, order, axis = arguments["x"], arguments.get("ord", 2), arguments.get("axis")
    _refuse_sized_order(order)
    array = x if x.dtype.kind in "fc" else x.astype(np.float64)
    axes = range(array.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, array.ndim)
    return _vector_norms(array, order, tuple(map(int, axes)), flag_of(arguments, "keepdims"))


@sized(np.linalg.matrix_norm)
def matrix_norm(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute norms of matrices along the last two dimensions."""
    order, keepdims = arguments.get("ord", "fro"), arguments.get("keepdims", False)
    return norm(func, {"x": arguments["x"], "ord": order, "axis": (-2, -1), "keepdims": keepdims})


def _vector_norms(x: Any, order: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    options: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    if isinstance(order, str):
        raise ValueError(f"Invalid norm order '{order}' for vectors")
    if order is None or order == 2:
        return _np.sqrt(_np.sum(squares(x), **options))
    if order == 0:
        return _np.sum(_np.not_equal(x, 0).astype(real_of(x.dtype)), **options)
    magnitudes = _np.abs(x)
    if order == np.inf:
        return _np.max(magnitudes, initial=0, **options)
    if order == -np.inf:
        return _np.min(magnitudes, **options)
    if order == 1:
        return _np.sum(magnitudes, **options)
    magnitudes **= order  # keeps dtype and shape
    powers = _np.sum(magnitudes, **options)
    powers **= np.reciprocal(order, dtype=powers.dtype)
    return powers


_OF_VALUES: Final[dict[Any, Callable[..., Any]]] = {
    2: partial(np.max, initial=0), -2: np.min, "nuc": np.sum,
}  # fmt: skip
_OF_SUMS: Final[dict[Any, Callable[..., Any]]] = {
    1: partial(np.max, initial=0), np.inf: partial(np.max, initial=0), -1: np.min, -np.inf: np.min,
}  # fmt: skip


def _matrix_norms(x: Any, order: Any, row: int, column: int) -> Any:
    if order in (None, "fro", "f"):
        return _np.sqrt(_np.sum(squares(x), axis=(row, column)))
    if order in _OF_VALUES:
        return _OF_VALUES[order](singular_values_of(_np.moveaxis(x, (row, column), (-2, -1))), axis=-1)
    if order not in _OF_SUMS:
        raise ValueError("Invalid norm order for matrices.")
    first, second = (row, column) if order in (1, -1) else (column, row)
    return _OF_SUMS[order](_np.sum(_np.abs(x), axis=first), axis=second - (second > first))
