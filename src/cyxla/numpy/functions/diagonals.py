"""Diagonals, triangles and grids."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cyxla.numpy.functions.movement import (
    broadcast_arrays,
    moveaxis,
    ravel,
    reshape_row_major,
    shape_only_array,
)
from cyxla.numpy.functions.movement import broadcast_to as numpy_broadcast_to
from cyxla.numpy.indexing.access import convert_for_assignment
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, is_traced, value_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.registry import implements
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import full_like, iota_along, scalar, zeros_like

Array = TracedArray


def _diagonal_range(rows: int, columns: int, offset: int) -> tuple[int, int]:
    """Return start and length of a diagonal in the row-major elements of a matrix."""
    first = offset if offset >= 0 else -offset * columns
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    return first, max(length, 0)


def diagonal_of(op: XlaOp, offset: int) -> XlaOp:
    """Return the diagonals of the last two dimensions, a strided slice of the row-major elements."""
    *outer, rows, columns = op.shape.dims
    first, length = _diagonal_range(rows, columns, offset)
    flat = xla.reshape(op, (*outer, rows * columns))
    if not length:
        return xla.slice_in_dim(flat, 0, 0, 1, len(outer))
    return xla.slice_in_dim(flat, first, first + (length - 1) * (columns + 1) + 1, columns + 1, len(outer))


def diagonal_matrix(op: XlaOp, offset: int) -> XlaOp:
    """Return the matrix with the given diagonal and zeros elsewhere."""
    n = op.shape.dims[0]
    side = n + abs(offset)
    if not n:
        return xla.broadcast(xla.constant(op.builder, 0, op.shape.dtype), (side, side))
    rows, columns = (iota_along(op.builder, ElementType.S64, (side, side), d) for d in range(2))
    mask = xla.eq(xla.add(rows, full_like(rows, offset)), columns)
    padded = xla.pad_in_dim(op, scalar(op, 0), 0, 0, abs(offset))
    repeated = xla.broadcast_in_dim(padded, (side, side), (0 if offset >= 0 else 1,))
    return xla.select(mask, repeated, zeros_like(repeated))


@implements(np.diag)
def diag(v: Any, k: int = 0) -> Array:
    """Return the diagonal of a matrix, or the matrix with a diagonal."""
    array = as_strong(v)
    if array.ndim == 1:
        return TracedArray(diagonal_matrix(value_of(array), k.__index__()))
    if array.ndim == 2:
        return diagonal(array, k)
    raise ValueError("Input must be 1- or 2-d.")


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Array:
    """Return the matrix with all elements on a diagonal."""
    return TracedArray(diagonal_matrix(value_of(ravel(v)), k.__index__()))


@implements(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Return read-only diagonals of matrices."""
    array: Array = as_strong(a)
    if array.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    first, second = normalize_axis_index(axis1, array.ndim), normalize_axis_index(axis2, array.ndim)
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    order = tuple([d for d in range(array.ndim) if d not in (first, second)] + [first, second])
    memory = np.diagonal(array.memory, offset.__index__(), first, second)
    return array.make_view(lambda v: diagonal_of(xla.transpose(v, order), offset.__index__()), None, memory)


@implements(np.linalg.diagonal)
def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Return read-only diagonals of the last two dimensions."""
    return diagonal(x, offset, -2, -1)


@implements(np.fill_diagonal)
def fill_diagonal(a: Array, val: Any, wrap: bool = False) -> None:
    """Write to the main diagonal."""
    if isinstance(val, SizedArray):
        hooks.sized_function(np.fill_diagonal, (a, val, wrap), {})
        return
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    step = a.shape[1] + 1 if a.ndim == 2 else 1 + int(np.cumprod(a.shape[:-1]).sum())
    end = a.size if a.ndim > 2 or wrap else a.shape[1] * a.shape[1]
    mask = np.zeros(a.size, bool)
    mask[:end:step] = True
    count = int(mask.sum())
    values = ravel(TracedArray(convert_for_assignment(val, a)))
    if not count or not values.size:
        return
    if values.size > 1:
        value_indices = np.zeros(a.size, np.int64)
        value_indices[mask] = np.arange(count) % values.size
        new = values[value_indices.reshape(a.shape)]
    else:
        new = reshape_row_major(values, ())
    np.copyto(a, new, where=mask.reshape(a.shape), casting="unsafe")  # type: ignore[arg-type]


# -- triangles


def _index_along(builder: Any, sizes: tuple[int, ...], dimension: int) -> XlaOp:
    return xla.iota(builder, Shape.array(ElementType.S64, sizes), dimension)


def _lower_triangle_mask(op: XlaOp, k: int) -> XlaOp:
    """Return a mask of the elements of the last two dimensions on or below a diagonal."""
    sizes = op.shape.dims
    row, column = (_index_along(op.builder, sizes, len(sizes) - d) for d in (2, 1))
    return xla.le(column, xla.add(row, xla.broadcast(xla.constant(op.builder, k, "s64"), sizes)))


def _zero_triangle(m: Any, k: int, *, lower: bool) -> Array:
    array = as_strong(m)
    if array.ndim == 1:  # NumPy broadcasts a vector to a square
        array = numpy_broadcast_to(array, (array.size, array.size))
    elif array.ndim == 0:
        np.tril(shape_only_array(array))
    op = value_of(array)
    zero = xla.broadcast(xla.constant(op.builder, 0, op.shape.dtype), op.shape.dims)
    offset = int(k) if is_traced(k) else index(k)
    mask = _lower_triangle_mask(op, offset if lower else offset - 1)
    return TracedArray(xla.select(mask, *((op, zero) if lower else (zero, op))))


@implements(np.tril)
def tril(m: Any, k: int = 0) -> Array:
    """Zero the elements above a diagonal."""
    return _zero_triangle(m, k, lower=True)


@implements(np.triu)
def triu(m: Any, k: int = 0) -> Array:
    """Zero the elements below a diagonal."""
    return _zero_triangle(m, k, lower=False)


@implements(np.tril_indices_from)
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """Return the indices of the lower triangle as NumPy arrays."""
    return np.tril_indices_from(shape_only_array(as_strong(arr)), k)


@implements(np.triu_indices_from)
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """Return the indices of the upper triangle as NumPy arrays."""
    return np.triu_indices_from(shape_only_array(as_strong(arr)), k)


@implements(np.diag_indices_from)
def diag_indices_from(arr: Any) -> Any:
    """Return the indices of the diagonal as NumPy arrays."""
    return np.diag_indices_from(shape_only_array(as_strong(arr)))


# -- grids


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Array, ...]:
    """Return coordinate arrays of a grid."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    rank = len(xi)
    order = [1, 0, *range(2, rank)] if indexing == "xy" and rank > 1 else list(range(rank))
    arrays = [as_strong(x) for x in xi]
    vectors = [
        reshape_row_major(a, [a.size if d == order[k] else 1 for d in range(rank)]) for k, a in enumerate(arrays)
    ]
    if sparse:
        return tuple([a.copy() for a in vectors]) if copy else tuple(vectors)
    full = broadcast_arrays(*vectors)
    return tuple([TracedArray(value_of(a)) for a in full]) if copy else full


@implements(np.ix_)
def ix_(*args: Any) -> tuple[Array, ...]:
    """Return index vectors, each along its own dimension."""
    if any(is_traced(x) and as_traced(x).dtype.kind == "b" for x in args):
        return hooks.sized_function(np.ix_, args, {})  # type: ignore[no-any-return]
    result = []
    for k, x in enumerate(args):
        array = as_strong(x)
        if array.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if array.dtype.kind == "b":
            array = as_strong(np.nonzero(np.asarray(x))[0])
        result.append(reshape_row_major(array, [array.size if d == k else 1 for d in range(len(args))]))
    return tuple(result)


@implements(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:  # noqa: N803 - NumPy's name
    """Return powers of a vector as columns."""
    array = as_strong(x)
    if array.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = array.size if N is None else N.__index__()
    if count < 0:
        raise ValueError("negative dimensions are not allowed")
    dtype = np.promote_types(array.dtype, int)
    base = as_traced(array, dtype)
    columns: list[Any] = [np.ones_like(base)]
    for _ in range(1, count):
        columns.append(columns[-1] * base)
    selected = columns[:count] if increasing else columns[:count][::-1]
    if not selected:
        return moveaxis(as_traced(np.zeros((0, array.size), dtype)), 0, 1)
    result: Any = np.stack(selected, 1)
    return result  # type: ignore[no-any-return]
