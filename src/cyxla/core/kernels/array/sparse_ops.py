"""Sparse tensors: a matrix of indices with one value per row."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.shape_operands import axes_of, sizes_of
from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.numeric_limits import wide_type
from cyxla.core.framework.types import NUMBER
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


def _check_sparse(indices: Array, values: Array, shape: Array) -> None:
    if indices.ndim != 2 or values.ndim != 1 or shape.ndim != 1:
        raise ShapeError(
            f"a sparse tensor is a matrix of indices, and vectors of values and sizes; the shapes are "
            f"{list(indices.shape)}, {list(values.shape)} and {list(shape.shape)}"
        )
    if indices.shape != (len(values), len(shape)):
        raise ShapeError(f"indices {list(indices.shape)} for {len(values)} values of rank {len(shape)}")
    _check_inside(indices, shape)


def _check_inside(indices: Array, shape: Array) -> None:
    bad = ((indices < 0) | (indices >= shape)).any(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidArgumentError(f"indices[{row}] = {indices[row].tolist()} is outside of {shape.tolist()}")


@array_kernel("SparseToDense", attrs=("validate_indices",))
def _sparse_to_dense(indices: Array, shape: Array, values: Array, default: Array, *, validate_indices: bool) -> Array:
    """Scatter values to a dense tensor; indices are a scalar, a vector or a matrix, and a single value broadcasts."""
    sizes = sizes_of(shape, "output_shape")
    rows = indices.reshape(1, 1) if not indices.ndim else indices[:, None] if indices.ndim == 1 else indices
    if rows.ndim != 2 or rows.shape[1] != len(sizes):
        raise ShapeError(f"sparse_indices {list(indices.shape)} do not name elements of rank {len(sizes)}")
    if values.ndim > 1 or (values.ndim and len(values) != len(rows)):
        raise ShapeError(f"sparse_values {list(values.shape)} must be a scalar or hold {len(rows)} values")
    if default.ndim:
        raise ShapeError(f"default_value must be a scalar; its shape is {list(default.shape)}")
    _check_inside(rows, shape)
    if validate_indices:
        _check_ascending(rows)
    result = np.full(sizes, default, default.dtype)
    if len(rows):
        result[tuple(rows.T)] = values
    return result


def _check_ascending(rows: Array) -> None:
    order = [tuple(row) for row in rows.tolist()]
    for k in range(1, len(order)):
        if order[k] <= order[k - 1]:
            fault = "repeated" if order[k] == order[k - 1] else "out of order"
            raise InvalidArgumentError(f"indices[{k}] = {list(order[k])} is {fault}")


@array_kernel("SparseTensorDenseMatMul", attrs=("adjoint_a", "adjoint_b"), types={"T": NUMBER})
def _sparse_matmul(indices: Array, values: Array, shape: Array, b: Array, *, adjoint_a: bool, adjoint_b: bool) -> Array:
    _check_sparse(indices, values, shape)
    if len(shape) != 2 or b.ndim != 2:
        raise ShapeError(f"both sides must be matrices: {shape.tolist()} and {list(b.shape)}")
    dense = b.conj().T if adjoint_b else b
    rows, columns, sizes = indices[:, 0], indices[:, 1], shape.tolist()
    if adjoint_a:
        rows, columns, sizes, values = columns, rows, sizes[::-1], values.conj()
    if sizes[1] != dense.shape[0]:
        raise ShapeError(f"the inner sizes of {sizes} and {list(dense.shape)} differ")
    wide = wide_type(b.dtype)
    result = np.zeros((sizes[0], dense.shape[1]), wide)
    np.add.at(result, rows, values[:, None].astype(wide, copy=False) * dense[columns].astype(wide, copy=False))
    return result.astype(b.dtype, copy=False)


@array_kernel("SparseReduceSum", attrs=("keep_dims",), types={"T": NUMBER})
def _sparse_reduce_sum(indices: Array, values: Array, shape: Array, axes: Array, *, keep_dims: bool) -> Array:
    _check_sparse(indices, values, shape)
    reduced = set(axes_of(axes, len(shape))) if axes.size else set(range(len(shape)))
    kept_dims = [d for d in range(len(shape)) if d not in reduced]
    sizes = [int(shape[d]) for d in kept_dims]
    result = np.zeros(sizes, values.dtype)
    np.add.at(result, tuple(indices[:, d] for d in kept_dims), values)
    return result.reshape([1 if d in reduced else int(shape[d]) for d in range(len(shape))]) if keep_dims else result


@array_kernel("EditDistance", attrs=("normalize",))
def _edit_distance(
    indices: Array,
    values: Array,
    shape: Array,
    truth_indices: Array,
    truth: Array,
    truth_shape: Array,
    *,
    normalize: bool,
) -> Array:
    """Return the edit distances of sequences along the last dimension, relative to the true length if normalised."""
    _check_sparse(indices, values, shape)
    _check_sparse(truth_indices, truth, truth_shape)
    if len(shape) != len(truth_shape) or not len(shape):
        raise ShapeError(f"hypothesis {shape.tolist()} and truth {truth_shape.tolist()} must have one rank, 1 or more")
    sequences = _sequences(indices, values), _sequences(truth_indices, truth)
    sizes = np.maximum(shape, truth_shape)[:-1].tolist()
    distances = np.zeros(sizes, np.float32)
    for position in {*sequences[0], *sequences[1]}:
        guess, true = (side.get(position, []) for side in sequences)
        changes = float(_levenshtein(guess, true))
        if normalize:
            changes = changes / len(true) if true else np.inf
        distances[position] = changes
    return distances


def _sequences(indices: Array, values: Array) -> dict[tuple[int, ...], list[Any]]:
    sequences: dict[tuple[int, ...], list[Any]] = {}
    for position, value in zip(indices[:, :-1].tolist(), values.tolist(), strict=True):
        sequences.setdefault(tuple(position), []).append(value)
    return sequences


def _levenshtein(a: list[Any], b: list[Any]) -> int:
    """Count insertions, deletions and substitutions (Levenshtein, 1966)."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


@array_kernel("SparseReshape")
def _sparse_reshape(indices: Array, shape: Array, new_shape: Array) -> tuple[Array, Array]:
    """Reshape a sparse tensor; one of the new sizes may be -1."""
    if indices.ndim != 2 or shape.ndim != 1 or new_shape.ndim != 1 or indices.shape[1] != len(shape):
        raise ShapeError(f"indices {list(indices.shape)} do not belong to the shape {shape.tolist()}")
    sizes, total = new_shape.tolist(), prod(shape.tolist())
    if sizes.count(-1) > 1 or min(sizes, default=0) < -1:
        raise InvalidArgumentError(f"at most one size may be -1, and no size less than -1: {sizes}")
    if -1 in sizes:
        rest = prod(n for n in sizes if n != -1)
        sizes[sizes.index(-1)] = total // rest if rest else 0
    if prod(sizes) != total:
        raise InvalidArgumentError(f"{total} elements do not fit the shape {new_shape.tolist()}")
    if not len(indices):
        return np.zeros((0, len(sizes)), np.int64), np.array(sizes, np.int64)
    flat = np.ravel_multi_index(tuple(indices.T), tuple(shape.tolist()))
    new_indices = np.stack(np.unravel_index(flat, tuple(sizes)), axis=1)
    return new_indices.astype(np.int64).reshape(len(indices), len(sizes)), np.array(sizes, np.int64)


@array_kernel("SparseFillEmptyRows")
def _fill_empty_rows(indices: Array, values: Array, shape: Array, default: Array) -> tuple[Array, Array, Array, Array]:
    """Add the default value in the first column of rows without values."""
    _check_sparse(indices, values, shape)
    if default.ndim:
        raise ShapeError(f"default_value must be a scalar; its shape is {list(default.shape)}")
    rows = int(shape[0])
    is_empty = np.ones(rows, bool)
    is_empty[indices[:, 0]] = False
    added = np.zeros((int(is_empty.sum()), len(shape)), np.int64)
    added[:, 0] = np.flatnonzero(is_empty)
    all_indices = np.concatenate([indices, added])
    all_values = np.concatenate([values, np.full(len(added), default, values.dtype)])
    order = np.argsort(all_indices[:, 0], kind="stable")
    reverse = np.empty(len(order), np.int64)
    reverse[order] = np.arange(len(order))
    return all_indices[order], all_values[order], is_empty, reverse[: len(indices)]
