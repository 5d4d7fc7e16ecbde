"""Matrix products, casts, ranges, counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.ranges import stepped_range
from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.numeric_limits import wide_type
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import FLOAT8, FLOATING, INT4, NUMBER, REAL, DataType, as_data_type
from cyxla.core.kernels.lib.elementwise import check_same_shape
from cyxla.core.kernels.lib.fused_epilogue import FUSED_ATTRS, apply_fused_ops
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


@array_kernel("AddN", types={"T": NUMBER})
def _add_n(inputs: list[Array]) -> Array:
    for x in inputs[1:]:
        check_same_shape(inputs[0], x)
    total = inputs[0].astype(wide_type(inputs[0].dtype))
    with np.errstate(all="ignore"):
        for x in inputs[1:]:
            total = total + x
    return total.astype(inputs[0].dtype, copy=False)


@array_kernel("AccumulateNV2", attrs=("shape",), types={"T": NUMBER})
def _accumulate_n(inputs: list[Array], *, shape: TensorShape) -> Array:
    """Sum arrays of one shape; TensorFlow's graphs do so by a temporary variable."""
    if not TensorShape(inputs[0].shape).is_compatible_with(shape):
        raise ShapeError(f"the inputs have the shape {list(inputs[0].shape)}, not {shape}")
    return _add_n(inputs)


@array_kernel("L2Loss", types={"T": FLOATING})
def _l2_loss(x: Array) -> Array:
    """Return half the sum of squares."""
    wide = x.astype(wide_type(x.dtype))
    with np.errstate(all="ignore"):
        return np.asarray(np.square(wide).sum(dtype=wide.dtype) / 2).astype(x.dtype)


@array_kernel("ClipByValue", types={"T": NUMBER})
def _clip(x: Array, low: Array, high: Array) -> Array:
    """Return max(min(x, high), low), propagating NaN; a bound is a scalar or has x's shape."""
    for name, bound in (("clip_value_min", low), ("clip_value_max", high)):
        if bound.ndim and bound.shape != x.shape:
            raise ShapeError(f"{name} {list(bound.shape)} must be a scalar or have the shape {list(x.shape)}")
    return np.maximum(np.minimum(x, high), low)


@array_kernel("Cross", types={"T": REAL})
def _cross(a: Array, b: Array) -> Array:
    check_same_shape(a, b)
    if not a.ndim:
        raise ShapeError("cross products need vectors; these are scalars")
    if a.shape[-1] != 3:
        raise FailedPreconditionError(f"cross products need a last dimension of 3; the shape is {list(a.shape)}")
    wide = wide_type(a.dtype)
    u, v = (np.moveaxis(x.astype(wide, copy=False), -1, 0) for x in (a, b))
    parts = [u[(k + 1) % 3] * v[(k + 2) % 3] - u[(k + 2) % 3] * v[(k + 1) % 3] for k in range(3)]
    return np.stack(parts, axis=-1).astype(a.dtype, copy=False)


# --------------------------------------------------------------------------------------------------------- products


def _product(a: Array, b: Array) -> Array:
    wide = wide_type(a.dtype)
    with np.errstate(all="ignore"):
        product = np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False))
    return np.asarray(product).astype(a.dtype, copy=False)


def _check_inner(a: Array, b: Array) -> None:
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(f"the inner sizes of {list(a.shape)} and {list(b.shape)} differ", hint="transpose one of them")


@array_kernel("MatMul", attrs=("transpose_a", "transpose_b"))
def _matmul(a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
    for name, x in (("a", a), ("b", b)):
        if x.ndim != 2:
            raise ShapeError(f"{name} must be a matrix; its shape is {list(x.shape)}")
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    _check_inner(a, b)
    return _product(a, b)


@array_kernel("_FusedMatMul", attrs=("transpose_a", "transpose_b", *FUSED_ATTRS))
def _fused_matmul(
    a: Array, b: Array, args: list[Array], *, transpose_a: bool, transpose_b: bool, **fused: Any
) -> Array:
    return apply_fused_ops(_matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b), args, **fused)


def _adjoint(x: Array) -> Array:
    transposed = np.swapaxes(x, -1, -2)
    return transposed.conj() if x.dtype.kind == "c" else transposed


def _batch_matmul(broadcast: bool) -> Callable[..., Array]:
    def multiply(x: Array, y: Array, *, adj_x: bool, adj_y: bool, Tout: DataType | None = None) -> Array:
        for name, operand in (("x", x), ("y", y)):
            if operand.ndim < 2:
                raise ShapeError(f"{name} must hold matrices; its shape is {list(operand.shape)}")
        if Tout is not None:
            x, y = x.astype(Tout.numpy), y.astype(Tout.numpy)
        x, y = _adjoint(x) if adj_x else x, _adjoint(y) if adj_y else y
        _check_inner(x, y)
        _check_batches(x, y, broadcast)
        return _product(x, y)

    return multiply


def _check_batches(x: Array, y: Array, broadcast: bool) -> None:
    a, b = x.shape[:-2], y.shape[:-2]
    fits = all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False)) if broadcast else a == b
    if not fits:
        raise ShapeError(f"the batches of {list(x.shape)} and {list(y.shape)} do not fit each other")


array_kernel("BatchMatMul", _batch_matmul(broadcast=False), attrs=("adj_x", "adj_y"))
array_kernel("BatchMatMulV2", _batch_matmul(broadcast=True), attrs=("adj_x", "adj_y"))
array_kernel("BatchMatMulV3", _batch_matmul(broadcast=True), attrs=("adj_x", "adj_y", "Tout"))


@array_kernel("SparseMatMul", attrs=("transpose_a", "transpose_b"))
def _sparse_matmul(a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
    """Multiply matrices of f32 or bf16 in f32."""
    wide = np.dtype(np.float32)
    return _matmul(a.astype(wide), b.astype(wide), transpose_a=transpose_a, transpose_b=transpose_b)


# ------------------------------------------------------------------------------------------------------------ casts


_CAST = (*NUMBER, *FLOAT8, *INT4, as_data_type("bool"))


@array_kernel("Cast", attrs=("DstT", "Truncate"), types={"SrcT": _CAST, "DstT": _CAST})
def _cast(x: Array, *, DstT: DataType, Truncate: bool) -> Array:
    """Convert element types; floats are truncated to integers, and integers keep their low bits."""
    if x.dtype == DstT.numpy:
        return x
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c" and DstT.numpy.kind not in "cb":
            x = x.real
        if Truncate and DstT.text in ("bfloat16", "half"):
            return _truncate_float(x, DstT)
        if DstT.text == "bool":
            return np.asarray(x != 0)
        if DstT.text == "bfloat16" and x.dtype == np.float64:
            x = x.astype(np.float32)
        return x.astype(DstT.numpy)


def _truncate_float(x: Array, target: DataType) -> Array:
    """Round to a narrower float towards zero."""
    rounded = x.astype(target.numpy)
    wide = x.astype(np.float64)
    too_large = np.abs(rounded.astype(np.float64)) > np.abs(wide)
    bits = rounded.view(np.uint16)
    return np.asarray(np.where(too_large, bits - np.uint16(1), bits), np.uint16).view(target.numpy)


@array_kernel("Bucketize", attrs=("boundaries",))
def _bucketize(x: Array, *, boundaries: Sequence[float]) -> Array:
    """Return the index of each number's interval between ascending boundaries; intervals include their lower end."""
    edges = np.asarray(boundaries, np.float32)
    if (edges[1:] < edges[:-1]).any():
        raise InvalidArgumentError(f"boundaries must be sorted: {list(boundaries)}")
    return np.searchsorted(edges, x.astype(np.float64), side="right").astype(np.int32)


array_kernel("Range", stepped_range, types={"Tidx": tuple(t for t in REAL)})


# ----------------------------------------------------------------------------------------------------------- counts


def _count(values: Array, size: int, weights: Array, binary: bool) -> Array:
    """Count the occurrences of each number below `size`, or sum their weights; larger numbers are ignored."""
    inside = values < size
    selected = values[inside]
    result = np.zeros(size, weights.dtype)
    if binary:
        result[selected] = 1
    else:
        np.add.at(result, selected, weights[inside] if weights.size else np.ones((), weights.dtype))
    return result


def _check_bincount(values: Array, size: Array, weights: Array) -> int:
    if size.size != 1 or size.ndim > 1:
        raise ShapeError(f"size must be a scalar; its shape is {list(size.shape)}")
    if size < 0:
        raise InvalidArgumentError(f"size must not be negative; it is {size}")
    if (values < 0).any():
        raise InvalidArgumentError(f"the numbers to count must not be negative; one is {values.min()}")
    if weights.size and weights.shape != values.shape:
        raise ShapeError(f"weights {list(weights.shape)} must be empty or have the shape {list(values.shape)}")
    return int(size.reshape(()))


@array_kernel("Bincount")
def _bincount(values: Array, size: Array, weights: Array) -> Array:
    return _count(values.reshape(-1), _check_bincount(values, size, weights), weights.reshape(-1), binary=False)


@array_kernel("DenseBincount", attrs=("binary_output",))
def _dense_bincount(values: Array, size: Array, weights: Array, *, binary_output: bool) -> Array:
    """Count the numbers of a vector, or of each row of a matrix."""
    if values.ndim > 2:
        raise ShapeError(f"the input must be a vector or a matrix; its shape is {list(values.shape)}")
    count = _check_bincount(values, size, weights)
    if values.ndim < 2:
        return _count(values.reshape(-1), count, weights.reshape(-1), binary_output)
    rows = [_count(v, count, weights[k] if weights.size else weights, binary_output) for k, v in enumerate(values)]
    return np.array(rows, weights.dtype).reshape(len(rows), count)


@array_kernel("RaggedBincount", attrs=("binary_output",))
def _ragged_bincount(splits: Array, values: Array, size: Array, weights: Array, *, binary_output: bool) -> Array:
    """Count the numbers of each row of a ragged tensor."""
    count = _check_bincount(values, size, weights)
    if (
        splits.ndim != 1
        or not len(splits)
        or splits[0] != 0
        or splits[-1] != len(values)
        or (np.diff(splits) < 0).any()
    ):
        raise InvalidArgumentError(f"splits must ascend from 0 to {len(values)}, the number of values")
    rows = [slice(a, b) for a, b in zip(splits[:-1].tolist(), splits[1:].tolist(), strict=True)]
    rows_of_counts = [
        _count(values[row], count, weights[row] if weights.size else weights, binary_output) for row in rows
    ]
    return np.array(rows_of_counts, weights.dtype).reshape(len(rows), count)


@array_kernel("SparseBincount", attrs=("binary_output",))
def _sparse_bincount(
    indices: Array, values: Array, shape: Array, size: Array, weights: Array, *, binary_output: bool
) -> Array:
    """Count the numbers of a sparse vector, or of each row of a sparse matrix."""
    if shape.ndim != 1 or shape.size not in (1, 2) or values.ndim != 1:
        raise ShapeError(f"a sparse vector or matrix is needed; dense_shape is {shape.tolist()}")
    if indices.shape != (len(values), len(shape)):
        raise ShapeError(f"indices {list(indices.shape)} for {len(values)} values of rank {len(shape)}")
    if ((indices < 0) | (indices >= shape)).any():
        raise InvalidArgumentError(f"an index lies outside of the shape {shape.tolist()}")
    count = _check_bincount(values, size, weights)
    if len(shape) == 1:
        return _count(values, count, weights, binary_output)
    counts = np.zeros((int(shape[0]), count), weights.dtype)
    for row in np.unique(indices[:, 0]).tolist():
        in_row = indices[:, 0] == row
        counts[row] = _count(values[in_row], count, weights[in_row] if weights.size else weights, binary_output)
    return counts


@array_kernel("HistogramFixedWidth", attrs=("dtype",))
def _histogram(values: Array, value_range: Array, nbins: Array, *, dtype: DataType) -> Array:
    if value_range.shape != (2,):
        raise ShapeError(f"value_range must hold two numbers; its shape is {list(value_range.shape)}")
    if not value_range[0] < value_range[1]:
        raise InvalidArgumentError(f"value_range must ascend; it is {value_range.tolist()}")
    if nbins.ndim or nbins <= 0:
        raise InvalidArgumentError(f"nbins must be a positive scalar; it is {nbins.tolist()}")
    low, high = value_range.astype(np.float64)
    step = (high - low) / int(nbins)
    numbers = np.clip(np.floor((values.astype(np.float64).reshape(-1) - low) / step), 0, int(nbins) - 1)
    return np.bincount(numbers.astype(np.int64), minlength=int(nbins)).astype(dtype.numpy)


@array_kernel("NthElement", attrs=("reverse",))
def _nth_element(x: Array, n: Array, *, reverse: bool) -> Array:
    """Return the n-th smallest (or largest) element of each row."""
    if not x.ndim:
        raise ShapeError("the input must have at least one dimension; it is a scalar")
    if n.ndim or not 0 <= n < x.shape[-1]:
        raise InvalidArgumentError(f"n must be a number below the last size, {x.shape[-1]}; it is {n.tolist()}")
    index = x.shape[-1] - 1 - int(n) if reverse else int(n)
    return np.sort(x, axis=-1)[..., index]
