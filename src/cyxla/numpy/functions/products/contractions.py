"""Products of vectors, matrices and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import ShapeError
from cyxla.numpy.functions.products.named_axes import Label, NamedArray, drop_broadcast_axes, multiply, product
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, traced, value_of
from cyxla.numpy.tracing.registry import implementation_of, implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Dtype, result_type
from cyxla.numpy.ufuncs.apply import broadcast_together, to_outputs
from cyxla.numpy.ufuncs.gufuncs import gufunc, mismatch
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def to_common_dtype(*values: Any) -> tuple[list[XlaOp], Dtype]:
    """Convert arrays to their common dtype; Python numbers count as arrays, as in NumPy's products."""
    arrays = [as_traced(v) for v in values]
    dtype = result_type(*[a.dtype for a in arrays])
    return [convert(value_of(a), dtype) for a in arrays], dtype


def _batch_labels(op: XlaOp, core_rank: int) -> tuple[Label, ...]:
    """Return labels of the batch dimensions: their distance from the core dimensions."""
    return tuple(range(op.shape.rank - core_rank, 0, -1))


def _multiply_stacks(name: str, x: XlaOp, y: XlaOp, core_labels: tuple[str, str, str]) -> XlaOp:
    """Multiply stacks with broadcast batch dimensions; `core_labels` labels the core dimensions."""
    terms = [
        NamedArray(op, (*_batch_labels(op, len(part)), *part)) for op, part in zip((x, y), core_labels, strict=False)
    ]
    (a, b), sizes = drop_broadcast_axes(terms)
    if any(t.sizes.get(n, size) not in (size, 1) for t in terms for n, size in sizes.items()) or any(
        terms[0].sizes[n] != terms[1].sizes[n] for n in set(core_labels[0]) & set(core_labels[1])
    ):
        raise mismatch(name, x, y)
    batch = sorted((n for n in sizes if isinstance(n, int)), reverse=True)
    result_labels = (*batch, *core_labels[2])
    if "m" in a.labels and "n" in b.labels:  # broadcast the left matrix to avoid a transpose of the result
        missing = [n for n in batch if n in b.labels and n not in a.labels]
        left_batch = [n for n in batch if n in a.labels or n in missing]
        a = a.broadcast((*left_batch, *core_labels[0]), sizes) if missing and "k" in a.labels else a
    return product(a, b, result_labels).broadcast(result_labels, sizes).op


@gufunc(np.matmul, (2, 2, 2))
def _matmul(x: XlaOp, y: XlaOp) -> XlaOp:
    left, right = ("k" if x.shape.rank == 1 else "mk"), ("k" if y.shape.rank == 1 else "kn")
    return _multiply_stacks("matmul", x, y, (left, right, left[:-1] + right[1:]))


@gufunc(np.vecdot, (1, 1, 0))
def _vecdot(x: XlaOp, y: XlaOp) -> XlaOp:
    return _multiply_stacks("vecdot", _conjugate(x), y, ("k", "k", ""))


@gufunc(np.matvec, (2, 1, 1))
def _matvec(x: XlaOp, y: XlaOp) -> XlaOp:
    return _multiply_stacks("matvec", x, y, ("mk", "k", "m"))


@gufunc(np.vecmat, (1, 2, 1))
def _vecmat(x: XlaOp, y: XlaOp) -> XlaOp:
    return _multiply_stacks("vecmat", _conjugate(x), y, ("k", "kn", "n"))


def _conjugate(op: XlaOp) -> XlaOp:
    return xla.complex_(xla.real(op), xla.negate(xla.imag(op))) if op.shape.dtype.is_complex else op


@implements(np.dot)
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Contract the last dimension of one array with the last but one, or only one, of the other."""
    (x, y), _ = to_common_dtype(a, b)
    if not x.shape.rank or not y.shape.rank:
        return _to_exact_out(multiply(*broadcast_together([x, y], "dot")), out)
    return _to_exact_out(_contract("dot", x, y, (x.shape.rank - 1,), (max(y.shape.rank - 2, 0),)), out)


@implements(np.inner)
def inner(a: Any, b: Any) -> Any:
    """Contract the last dimensions of two arrays."""
    (x, y), _ = to_common_dtype(a, b)
    if not x.shape.rank or not y.shape.rank:
        return traced(multiply(*broadcast_together([x, y], "inner")))
    return traced(_contract("inner", x, y, (x.shape.rank - 1,), (y.shape.rank - 1,)))


@implements(np.vdot)
def vdot(a: Any, b: Any) -> Any:
    """Contract all elements of two arrays, the first conjugated."""
    (x, y), _ = to_common_dtype(a, b)
    x, y = _flatten(_conjugate(x)), _flatten(y)
    return traced(_contract("vdot", x, y, (0,), (0,)))


def _flatten(op: XlaOp) -> XlaOp:
    return xla.reshape(op, (op.shape.size,))


def _contract(name: str, x: XlaOp, y: XlaOp, left: Sequence[int], right: Sequence[int]) -> XlaOp:
    """Contract pairs of dimensions; the others of `x` come first in the result, then those of `y`."""
    for i, j in zip(left, right, strict=True):
        x_dims, y_dims = x.shape.dims, y.shape.dims
        if x_dims[i] != y_dims[j]:
            raise ShapeError(
                f"{name}: shapes {_format_shape(x_dims)} and {_format_shape(y_dims)} not aligned: "
                f"{x_dims[i]} (dim {i}) != {y_dims[j]} (dim {j})",
                where=_trace.user_line(),
            )
    names = {j: i for i, j in zip(left, right, strict=True)}
    a = NamedArray(x, tuple(range(x.shape.rank)))
    b = NamedArray(y, tuple(names.get(j, ~j) for j in range(y.shape.rank)))
    return product(a, b, [n for t in (a, b) for n in t.labels if n not in left]).op


def _format_shape(sizes: Sequence[int]) -> str:
    """Return sizes as text without blanks, as in NumPy's message."""
    return str(tuple(sizes)).replace(" ", "")


def _to_exact_out(op: XlaOp, out: Any) -> Any:
    """Return a result, or write it to ``out=`` of the same shape and dtype."""
    if out is None:
        return traced(op)
    fits = isinstance(out, TracedArray) and (out.shape, out.dtype) == (op.shape.dims, traced(op).dtype)
    if not fits or not out.contiguous:
        raise ValueError(
            "output array is not acceptable (must have the right datatype, number of dimensions, and be a C-Array)"
        )
    out.overwrite(op)
    return out


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Multiply all pairs of elements of two vectors."""
    (x, y), _ = to_common_dtype(a, b)
    result = product(NamedArray(_flatten(x), ("i",)), NamedArray(_flatten(y), ("j",)), ("i", "j"))
    return to_outputs([traced(result.op)], out, True, "same_kind", "outer")


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Contract the last and first dimensions, or pairs of dimensions."""
    (x, y), _ = to_common_dtype(a, b)
    left, right = _pairs(axes, x.shape.rank)
    _check_no_repeats(left, right)
    if len(left) != len(right):
        raise ShapeError("tensordot: shape-mismatch for sum", where=_trace.user_line())
    for i, j in zip(left, right, strict=True):  # a mismatch is reported before an axis out of range
        if _size(x, i) != _size(y, j):
            raise ShapeError("tensordot: shape-mismatch for sum", where=_trace.user_line())
    left, right = [i % x.shape.rank for i in left], [j % y.shape.rank for j in right]
    _check_no_repeats(left, right)
    return traced(_contract("tensordot", x, y, left, right))


def _check_no_repeats(*sides: Sequence[int]) -> None:
    if any(len(set(side)) < len(side) for side in sides):
        raise ValueError("tensordot: axes= names a dimension twice")


def _pairs(axes: Any, rank: int) -> tuple[list[int], list[int]]:
    try:
        left, right = axes
    except TypeError:
        count = index(axes)
        return list(range(-count, 0)), list(range(count))
    sides = [list(side) if np.ndim(side) else [side] for side in (left, right)]
    return sides[0], sides[1]


def _size(op: XlaOp, axis: Any) -> int:
    rank = op.shape.rank
    if not -rank <= index(axis) < rank:
        raise IndexError(f"tensordot: axis {axis} is out of bounds for an array of rank {rank}")
    return op.shape.dims[index(axis)]


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    """Compute the Kronecker product."""
    (x, y), _ = to_common_dtype(a, b)
    rank = max(x.shape.rank, y.shape.rank)
    x, y = (xla.reshape(v, (*[1] * (rank - v.shape.rank), *v.shape.dims)) for v in (x, y))
    names = [(d, side) for d in range(rank) for side in "ab"]
    result = product(NamedArray(x, tuple(names[::2])), NamedArray(y, tuple(names[1::2])), names)
    return traced(xla.reshape(result.op, [i * j for i, j in zip(x.shape.dims, y.shape.dims, strict=True)]))


@implements(np.trace)
def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Any:
    """Sum along a diagonal."""
    diagonal = implementation_of(np.diagonal)(as_traced(a), offset, axis1, axis2)
    return implementation_of(np.sum)(diagonal, axis=-1, dtype=dtype, out=out)


@implements(np.linalg.trace)
def linalg_trace(x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Any:
    """Sum along a diagonal of matrices."""
    return trace(x, offset, -2, -1, dtype)


@implements(np.linalg.matmul)
def linalg_matmul(x1: Any, x2: Any, /) -> Any:
    """Multiply matrices."""
    return implementation_of(np.matmul)(x1, x2)


@implements(np.linalg.outer)
def linalg_outer(x1: Any, x2: Any, /) -> Any:
    """Multiply all pairs of elements of two vectors."""
    x, y = as_traced(x1), as_traced(x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are x1.ndim={x.ndim} and x2.ndim={y.ndim}.")
    return outer(x, y)


@implements(np.linalg.vecdot)
def linalg_vecdot(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    """Compute dot products of vectors, the first conjugated."""
    return implementation_of(np.vecdot)(x1, x2, axis=axis)


@implements(np.linalg.tensordot)
def linalg_tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Contract the last and first dimensions, or pairs of dimensions."""
    return tensordot(x1, x2, axes)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """Multiply matrices in the cheapest order; the first and the last may be vectors."""
    matrices = [as_traced(a) for a in arrays]
    if len(matrices) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(matrices) == 2:
        return dot(matrices[0], matrices[1], out=out)
    for a in (matrices[0], matrices[-1]):
        if a.ndim not in (1, 2):
            raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be one- or two-dimensional")
    for a in matrices[1:-1]:
        if a.ndim != 2:
            raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    splits = _best_splits([_row_count(matrices[0]), *[a.shape[-1] if a.ndim == 2 else 1 for a in matrices]])
    return _to_exact_out(value_of(_multiply_chain(matrices, splits, 0, len(matrices) - 1)), out)


def _row_count(a: TracedArray) -> int:
    return a.shape[0] if a.ndim == 2 else 1


def _best_splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return the best split of each range of a matrix chain, by number of multiplications.

    Factor k of the chain has the shape (sizes[k], sizes[k + 1]).
    """
    count = len(sizes) - 1
    cost: dict[tuple[int, int], int] = {(k, k): 0 for k in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = {k: cost[i, k] + cost[k + 1, j] + prod((sizes[i], sizes[k + 1], sizes[j + 1])) for k in range(i, j)}
            splits[i, j] = min(costs, key=costs.__getitem__)
            cost[i, j] = costs[splits[i, j]]
    return splits


def _multiply_chain(arrays: Sequence[TracedArray], splits: dict[tuple[int, int], int], i: int, j: int) -> TracedArray:
    if i == j:
        return arrays[i]
    k = splits[i, j]
    return dot(_multiply_chain(arrays, splits, i, k), _multiply_chain(arrays, splits, k + 1, j))  # type: ignore[no-any-return]
