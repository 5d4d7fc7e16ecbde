"""Biases, data formats, top-k."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.geometry.windows import check_formats, is_channels_first
from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.numeric_limits import is_integer, wide_type
from cyxla.core.framework.types import FLOATING, NUMBER, REAL, DataType
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


# ----------------------------------------------------------------------------------------------------------- biases


def _channel_axis(x: Array, data_format: str) -> int:
    return 1 if is_channels_first(data_format) and x.ndim > 2 else x.ndim - 1


@array_kernel("BiasAdd", attrs=("data_format",), types={"T": NUMBER})
@array_kernel("BiasAddV1", types={"T": NUMBER})
def _bias_add(value: Array, bias: Array, *, data_format: str = "NHWC") -> Array:
    if value.ndim < 2:
        raise ShapeError(f"value must have rank 2 or more; its shape is {list(value.shape)}")
    if bias.ndim != 1:
        raise ShapeError(f"bias must be a vector; its shape is {list(bias.shape)}")
    axis = _channel_axis(value, data_format)
    if len(bias) != value.shape[axis]:
        raise ShapeError(f"a bias of {len(bias)} for {value.shape[axis]} channels, dimension {axis} of {value.shape}")
    return value + bias.reshape([len(bias) if d == axis else 1 for d in range(value.ndim)])


@array_kernel("BiasAddGrad", attrs=("data_format",), types={"T": NUMBER})
def _bias_add_grad(grad: Array, *, data_format: str) -> Array:
    if grad.ndim < 2:
        raise ShapeError(f"out_backprop must have rank 2 or more; its shape is {list(grad.shape)}")
    axis = _channel_axis(grad, data_format)
    rest = tuple(d for d in range(grad.ndim) if d != axis)
    return grad.sum(axis=rest, dtype=wide_type(grad.dtype)).astype(grad.dtype)


# ---------------------------------------------------------------------------------------------------------- layouts


@array_kernel("DataFormatDimMap", attrs=("src_format", "dst_format"))
def _dimension_map(x: Array, *, src_format: str, dst_format: str) -> Array:
    """Map dimensions of one data format to another; negative numbers count from the end."""
    check_formats(src_format, dst_format)
    size = len(src_format)
    bad = (x < -size) | (x >= size)
    if bad.any():
        raise InvalidArgumentError(f"{x[bad][0]} is not a dimension of {src_format}: [{-size}, {size}) are")
    table = np.array([dst_format.index(letter) for letter in src_format], x.dtype)
    return table[np.mod(x, size)]


@array_kernel("DataFormatVecPermute", attrs=("src_format", "dst_format"))
def _permute(x: Array, *, src_format: str, dst_format: str) -> Array:
    """Permute numbers or pairs, one per dimension or per spatial dimension, from one data format to another."""
    check_formats(src_format, dst_format)
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[1] != 2):
        raise ShapeError(f"x must be a vector, or a matrix of pairs; its shape is {list(x.shape)}")
    source, target = src_format, dst_format
    if len(x) == len(src_format) - 2:
        source, target = ("".join(c for c in text if c not in "NC") for text in (src_format, dst_format))
    if len(x) != len(source):
        raise ShapeError(f"x must hold an entry for each dimension of {src_format}, or for each spatial one: {x.shape}")
    return x[[source.index(letter) for letter in target]]


# --------------------------------------------------------------------------------------------------- the greatest


def _check_k(k: Array) -> int:
    if k.ndim:
        raise ShapeError(f"k must be a scalar; its shape is {list(k.shape)}")
    if k < 0:
        raise InvalidArgumentError(f"k must not be negative; it is {k}")
    return int(k)


def _argsort_descending(x: Array) -> Array:
    """Return the indices that sort each row in descending order, stably."""
    wide = x.astype(wide_type(x.dtype)) if not is_integer(x.dtype) else x
    order = np.argsort(wide[..., ::-1], axis=-1, kind="stable")
    return np.asarray(x.shape[-1] - 1 - order[..., ::-1])


def _top_elements(x: Array, k: int, index_type: np.dtype[Any]) -> tuple[Array, Array]:
    if not x.ndim:
        raise ShapeError("the input must have at least one dimension; it is a scalar")
    if k > x.shape[-1]:
        raise InvalidArgumentError(f"the {k} greatest of rows of {x.shape[-1]}", hint="k must not exceed the last size")
    order = _argsort_descending(x)[..., :k]
    return np.take_along_axis(x, order, axis=-1), order.astype(index_type)


@array_kernel("TopKV2", attrs=("index_type",), types={"T": REAL})
def _top_k_v2(x: Array, k: Array, *, index_type: DataType) -> tuple[Array, Array]:
    return _top_elements(x, _check_k(k), index_type.numpy)


@array_kernel("TopK", attrs=("k",), types={"T": REAL})
def _top_k(x: Array, *, k: int) -> tuple[Array, Array]:
    return _top_elements(x, k, np.dtype(np.int32))


@array_kernel(
    "ApproxTopK",
    attrs=("k", "reduction_dimension", "is_max_k"),
    types={"T": tuple(t for t in FLOATING if t.text != "double")},
)
def _approximate_top_k(x: Array, *, k: int, reduction_dimension: int, is_max_k: bool) -> tuple[Array, Array]:
    """Return the exact top k, which any approximation permits."""
    if not -x.ndim <= reduction_dimension < x.ndim:
        raise InvalidArgumentError(f"reduction_dimension {reduction_dimension} is not one of an input of rank {x.ndim}")
    rows = np.moveaxis(x, reduction_dimension, -1)
    values, indices = _top_elements(rows if is_max_k else -rows, k, np.dtype(np.int32))
    values = values if is_max_k else -values
    values, indices = (np.ascontiguousarray(np.moveaxis(part, -1, reduction_dimension)) for part in (values, indices))
    return values, indices


def _in_top(predictions: Array, targets: Array, k: Array) -> Array:
    """Return whether fewer than k classes score above the target; false for rows with non-finite scores."""
    if predictions.ndim != 2:
        raise ShapeError(f"predictions must be a matrix of rows of classes; their shape is {list(predictions.shape)}")
    if targets.shape != predictions.shape[:1]:
        raise ShapeError(f"targets {list(targets.shape)} must hold a class for each of {len(predictions)} rows")
    inside = (targets >= 0) & (targets < predictions.shape[1])
    rows = np.arange(len(predictions))
    target_scores = predictions[rows, np.where(inside, targets, 0)] if predictions.size else np.zeros(len(predictions))
    is_comparable = inside & np.isfinite(predictions).all(axis=1)
    return is_comparable & ((predictions > target_scores[:, None]).sum(axis=1) < k)


@array_kernel("InTopKV2")
def _in_top_k_v2(predictions: Array, targets: Array, k: Array) -> Array:
    if k.ndim:
        raise ShapeError(f"k must be a scalar; its shape is {list(k.shape)}")
    return _in_top(predictions, targets, k)


@array_kernel("InTopK", attrs=("k",))
def _in_top_k(predictions: Array, targets: Array, *, k: int) -> Array:
    return _in_top(predictions, targets, np.asarray(k))
