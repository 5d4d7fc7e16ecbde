"""Norms of vectors and matrices, condition numbers, ranks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from cyxla.numpy.functions.linalg import lapack
from cyxla.numpy.functions.linalg.equations import inverse_or_nan
from cyxla.numpy.functions.linalg.factorisations import eigvalsh, svd
from cyxla.numpy.functions.linalg.lapack import LinAlgError
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.zero_dim import Rank0

Array = Any
_EXTREMES: dict[float, Callable[..., Any]] = {np.inf: partial(np.max, initial=0), -np.inf: np.min}


def _to_inexact(x: Any) -> Array:
    """Convert to an array of floats or complex numbers."""
    array: Array = as_traced(x)
    return array if array.dtype.kind in "fc" else array.astype(np.float64)


def _squared_magnitudes(x: Array) -> Array:
    return x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """Compute norms of vectors along a dimension, or of matrices along two."""
    array = _to_inexact(x)
    if axis is None and (ord is None or (ord in ("f", "fro") and array.ndim == 2) or (ord == 2 and array.ndim == 1)):
        result = np.sqrt(np.sum(_squared_magnitudes(array)))
        return np.reshape(result, [1] * array.ndim) if keepdims else result
    axes = tuple(range(array.ndim)) if axis is None else _axes(axis)
    if len(axes) == 1:
        return _vector_norms(array, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    return _matrix_norms(array, ord, axes, keepdims)


def _axes(axis: Any) -> tuple[int, ...]:
    if isinstance(axis, tuple):
        return axis
    try:
        return (int(axis),)
    except TypeError as error:
        raise TypeError("'axis' must be None, an integer or a tuple of integers") from error


def _vector_norms(x: Array, order: Any, axis: int, keepdims: bool) -> Array:
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    if isinstance(order, str):
        raise ValueError(f"Invalid norm order '{order}' for vectors")
    if not np.ndim(order) and order in _EXTREMES:
        return _EXTREMES[order](np.abs(x), **options)
    if order == 0:
        return np.sum((x != 0).astype(x.real.dtype), **options)
    if order == 1:
        return np.sum(np.abs(x), **options)
    if order is None or order == 2:
        return np.sqrt(np.sum(_squared_magnitudes(x), **options))
    magnitudes = np.abs(x)
    magnitudes **= order  # keeps dtype and shape
    powers = np.sum(magnitudes, **options)
    powers **= np.reciprocal(order, dtype=powers.dtype)
    return powers


def _matrix_norms(x: Array, order: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    row, column = (normalize_axis_index(a, x.ndim) for a in axes)
    if row == column:
        raise ValueError("Duplicate axes given.")
    result = _matrix_norm(x, order, row, column)
    if not keepdims:
        return result
    return np.reshape(result, [1 if d in (row, column) else n for d, n in enumerate(x.shape)])


def _matrix_norm(x: Array, order: Any, row: int, column: int) -> Array:
    if order in (2, -2, "nuc"):
        values = svd(np.moveaxis(x, (row, column), (-2, -1)), compute_uv=False)
        if order == "nuc":
            return np.sum(values, axis=-1)
        return np.max(values, axis=-1, initial=0) if order == 2 else np.min(values, axis=-1)
    if order in (1, -1, np.inf, -np.inf):
        first, second = (row, column) if order in (1, -1) else (column, row)
        sums = np.sum(np.abs(x), axis=first)
        remaining = second - (second > first)
        return np.max(sums, axis=remaining, initial=0) if order > 0 else np.min(sums, axis=remaining)
    if order in (None, "fro", "f"):
        return np.sqrt(np.sum(_squared_magnitudes(x), axis=(row, column)))
    raise ValueError("Invalid norm order for matrices.")


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Compute norms of matrices along the last two dimensions."""
    return norm(x, ord, (-2, -1), keepdims)


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """Compute norms of vectors along dimensions, by default all, which are flattened into one."""
    array: Array = as_traced(x)
    axes = tuple(range(array.ndim)) if axis is None else normalize_axis_tuple(axis, array.ndim)
    rest = [d for d in range(array.ndim) if d not in axes]
    sizes = [*[array.shape[d] for d in rest], prod([array.shape[d] for d in axes])]
    flat = np.reshape(np.transpose(array, [*rest, *axes]), sizes)
    result = norm(flat, ord, -1)
    return np.reshape(result, [1 if d in axes else n for d, n in enumerate(array.shape)]) if keepdims else result


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Array:
    """Compute condition numbers."""
    (matrices,) = lapack.matrix_stacks(x)
    array: Array = matrices
    if lapack.has_empty_matrices(array):
        raise LinAlgError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        s = svd(array, compute_uv=False)
        result = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        (op,), dtype = lapack.to_double(*lapack.square_matrices(array))
        result = norm(TracedArray(op), p, (-2, -1)) * norm(TracedArray(inverse_or_nan(op)), p, (-2, -1))
        result = result.astype(np.zeros((), dtype).real.dtype)
    # nan in the matrix gives nan; any other nan comes from 0 / 0
    has_nan = np.any(np.isnan(array), axis=(-2, -1))
    return np.where(np.isnan(result) & ~has_nan, np.inf, result)


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:  # noqa: N803
    """Count the singular values that are not nearly zero."""
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    array: Array = as_traced(A)
    if array.ndim < 2:
        result: Array = np.any(array != 0).astype(np.int64)
        result.rank0 = Rank0.PYTHON
        return result
    s = np.abs(eigvalsh(array)) if hermitian else svd(array, compute_uv=False)
    if tol is None:
        relative_tolerance = (
            max(array.shape[-2:]) * np.finfo(s.dtype).eps if rtol is None else np.expand_dims(as_traced(rtol), -1)
        )
        tol = np.max(s, axis=-1, keepdims=True, initial=0) * relative_tolerance
    else:
        tol = np.expand_dims(as_traced(tol), -1)
    return np.count_nonzero(s > tol, axis=-1)
