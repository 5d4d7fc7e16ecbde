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
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced
from cyxla.numpy.tracing.zero_dim import Rank0

Array = Any
_EXTREMES: dict[float, Callable[..., Any]] = {np.inf: partial(np.max, initial=0), -np.inf: np.min}


def _inexact(x: Any) -> Array:
    """Convert to an array of floats or complex numbers."""
    array: Array = as_traced(x)
    return array if array.dtype.kind in "fc" else array.astype(np.float64)


def _squares(x: Array) -> Array:
    return x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """Compute norms of vectors along a dimension, or of matrices along two."""
    array = _inexact(x)
    if axis is None and (ord is None or (ord in ("f", "fro") and array.ndim == 2) or (ord == 2 and array.ndim == 1)):
        found = np.sqrt(np.sum(_squares(array)))
        return np.reshape(found, [1] * array.ndim) if keepdims else found
    axes = tuple(range(array.ndim)) if axis is None else _axes(axis)
    if len(axes) == 1:
        return _of_vectors(array, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    return _of_matrices(array, ord, axes, keepdims)


def _axes(axis: Any) -> tuple[int, ...]:
    if isinstance(axis, tuple):
        return axis
    try:
        return (int(axis),)
    except TypeError as error:
        raise TypeError("'axis' must be None, an integer or a tuple of integers") from error


def _of_vectors(x: Array, order: Any, axis: int, keepdims: bool) -> Array:
    where: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    if isinstance(order, str):
        raise ValueError(f"Invalid norm order '{order}' for vectors")
    if order in _EXTREMES:
        return _EXTREMES[order](np.abs(x), **where)
    if order == 0:
        return np.sum((x != 0).astype(x.real.dtype), **where)
    if order == 1:
        return np.sum(np.abs(x), **where)
    if order is None or order == 2:
        return np.sqrt(np.sum(_squares(x), **where))
    powers = np.sum(np.abs(x) ** order, **where)
    return powers ** np.reciprocal(order, dtype=powers.dtype)


def _of_matrices(x: Array, order: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    row, column = (normalize_axis_index(a, x.ndim) for a in axes)
    if row == column:
        raise ValueError("Duplicate axes given.")
    found = _matrix_norm(x, order, row, column)
    if not keepdims:
        return found
    return np.reshape(found, [1 if d in (row, column) else n for d, n in enumerate(x.shape)])


def _matrix_norm(x: Array, order: Any, row: int, column: int) -> Array:
    if order in (2, -2, "nuc"):
        values = svd(np.moveaxis(x, (row, column), (-2, -1)), compute_uv=False)
        if order == "nuc":
            return np.sum(values, axis=-1)
        return np.max(values, axis=-1, initial=0) if order == 2 else np.min(values, axis=-1)
    if order in (1, -1, np.inf, -np.inf):
        first, second = (row, column) if order in (1, -1) else (column, row)
        sums = np.sum(np.abs(x), axis=first)
        left = second - (second > first)
        return np.max(sums, axis=left, initial=0) if order > 0 else np.min(sums, axis=left)
    if order in (None, "fro", "f"):
        return np.sqrt(np.sum(_squares(x), axis=(row, column)))
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
    found = norm(flat, ord, -1)
    return np.reshape(found, [1 if d in axes else n for d, n in enumerate(array.shape)]) if keepdims else found


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Array:
    """Compute condition numbers."""
    (stacked,) = lapack.stacks(x)
    array: Array = stacked
    if lapack.without_elements(array):
        raise LinAlgError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        s = svd(array, compute_uv=False)
        found = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        (wide,), dtype = lapack.in_double(*lapack.squares(array))
        found = norm(TracedArray(wide), p, (-2, -1)) * norm(TracedArray(inverse_or_nan(wide)), p, (-2, -1))
        found = found.astype(np.zeros((), dtype).real.dtype)
    # nan in the matrix gives nan; else nan is zero divided by zero
    known = np.any(np.isnan(array), axis=(-2, -1))
    return np.where(np.isnan(found) & ~known, np.inf, found)


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:  # noqa: N803
    """Count the singular values that are not nearly zero."""
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    array: Array = as_traced(A)
    if array.ndim < 2:
        found: Array = np.any(array != 0).astype(np.int64)
        found.rank0 = Rank0.PYTHON
        return found
    s = np.abs(eigvalsh(array)) if hermitian else svd(array, compute_uv=False)
    if tol is None:
        part = max(array.shape[-2:]) * np.finfo(s.dtype).eps if rtol is None else as_traced(rtol)[..., None]
        tol = np.max(s, axis=-1, keepdims=True, initial=0) * part
    else:
        tol = as_traced(tol)[..., None]
    return np.count_nonzero(s > tol, axis=-1)
