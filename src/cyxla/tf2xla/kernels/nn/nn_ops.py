"""Biases, data formats, top-k."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.geometry.windows import check_formats, is_channels_first
from cyxla.core.framework.types import REAL, DataType
from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.tf2xla.lib.bounded_shapes import mask_padding, with_sizes
from cyxla.tf2xla.lib.dynamic_sizes import split_dynamic
from cyxla.tf2xla.lib.size_checks import SizePair
from cyxla.tf2xla.lib.typed_values import cast
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, checked, lowering, xla_kernel
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import (
    broadcast_to,
    full_like,
    iota_along,
    is_float,
    min_value,
    rank_of,
    reduced,
    scalar,
    select,
    sizes_of,
    sum_of,
    zeros_like,
)

Array = np.ndarray[Any, Any]


def _channels(x: XlaOp, data_format: str) -> int:
    return 1 if is_channels_first(data_format) and rank_of(x) > 2 else rank_of(x) - 1


def _bias_add(value: XlaOp, bias: XlaOp, *, data_format: str = "NHWC") -> XlaOp:
    """Add the bias, broadcast over all dimensions except the channels."""
    if rank_of(value) < 2 or rank_of(bias) != 1:
        raise ShapeError(
            f"a bias is a vector for values of rank 2 or more: {list(sizes_of(bias))}, {list(sizes_of(value))}"
        )
    axis = _channels(value, data_format)
    if sizes_of(bias)[0] != sizes_of(value)[axis]:
        raise ShapeError(f"a bias of {sizes_of(bias)[0]} for {sizes_of(value)[axis]} channels")
    return value + xla.broadcast_in_dim(bias, sizes_of(value), (axis,))


lowering("BiasAdd", _bias_add, attrs=("data_format",))
lowering("BiasAddV1", _bias_add)


@lowering("BiasAddGrad", attrs=("data_format",))
def _bias_add_grad(grad: XlaOp, *, data_format: str) -> XlaOp:
    if rank_of(grad) < 2:
        raise ShapeError(f"out_backprop must have rank 2 or more; its shape is {list(sizes_of(grad))}")
    axis = _channels(grad, data_format)
    return sum_of(grad, [d for d in range(rank_of(grad)) if d != axis])


# ----------------------------------------------------------------------------------------------------- data formats


@lowering("DataFormatDimMap", attrs=("src_format", "dst_format"))
def _dimension_map(x: XlaOp, *, src_format: str, dst_format: str) -> XlaOp:
    """Emit a chain of selects over the dimensions of the source format."""
    check_formats(src_format, dst_format)
    size = len(src_format)
    index = select(xla.lt(x, zeros_like(x)), x + scalar(x, size), x)
    result = zeros_like(x)
    for k, letter in enumerate(src_format):
        result = select(xla.eq(index, full_like(x, k)), full_like(x, dst_format.index(letter)), result)
    return result


@lowering("DataFormatVecPermute", attrs=("src_format", "dst_format"))
def _permute(x: XlaOp, *, src_format: str, dst_format: str) -> XlaOp:
    """Concatenate slices in the order of the target format."""
    check_formats(src_format, dst_format)
    if rank_of(x) not in (1, 2) or (rank_of(x) == 2 and sizes_of(x)[1] != 2):
        raise ShapeError(f"x must be a vector, or a matrix of pairs; its shape is {list(sizes_of(x))}")
    source, target = src_format, dst_format
    if sizes_of(x)[0] == len(src_format) - 2:
        source, target = ("".join(c for c in text if c not in "NC") for text in (src_format, dst_format))
    if sizes_of(x)[0] != len(source):
        raise ShapeError(f"x must hold an entry for each dimension of {src_format}, or for each spatial one")
    return xla.concatenate([xla.slice_in_dim(x, source.index(c), source.index(c) + 1) for c in target], 0)


# --------------------------------------------------------------------------------------------------------- top-k


def _descending_comparator(dtype: ElementType) -> Any:
    """Build a comparator for descending order; floats are in total order."""
    builder = XlaBuilder("greater")
    kinds = [dtype, dtype, ElementType.S32, ElementType.S32]
    parameters = [xla.parameter(builder, i, Shape.array(t), f"p{i}") for i, t in enumerate(kinds)]
    compare = xla.gt_total_order if dtype.is_float else xla.gt
    return builder.build(compare(parameters[0], parameters[1]))


def _top_elements(x: XlaOp, k: int, index_type: DataType) -> list[XlaOp]:
    """Sort elements and indices stably, and slice the first k."""
    if not rank_of(x):
        raise ShapeError("the input must have at least one dimension; it is a scalar")
    last = rank_of(x) - 1
    if k > sizes_of(x)[last]:
        raise InvalidArgumentError(f"the {k} greatest of rows of {sizes_of(x)[last]}")
    indices = iota_along(x.builder, ElementType.S32, sizes_of(x), last)
    result = xla.sort([x, indices], _descending_comparator(x.shape.dtype), last, is_stable=True)
    values, order = (xla.slice_in_dim(xla.get_tuple_element(result, i), 0, k, 1, last) for i in range(2))
    return [values, cast(order, index_type)]


_TYPES = tuple(t for t in REAL if t is not DataType.DT_UINT16)


@xla_kernel("TopKV2", types={"T": _TYPES})
def _top_k(ctx: XlaOpKernelContext) -> Any:
    """Emit k elements if k is constant, else all elements sorted with a dynamic size."""
    x, k = ctx.dynamic_input("input"), ctx.xla.constant_value(ctx.input_expression("k"))
    if k is not None and (k.ndim or k < 0):
        raise InvalidArgumentError(f"k must be a scalar that is not negative; it is {k.tolist()}")
    padded, sizes = split_dynamic(x)
    last = rank_of(x) - 1
    row = sizes.pop(last, None)
    if row is not None:  # padding comes last
        padded = mask_padding(padded, {last: row}, _least(padded))
    count = ctx.input("k")
    if rank_of(count):
        raise ShapeError(f"k must be a scalar; its shape is {list(sizes_of(count))}")
    columns = (sizes_of(x)[-1] if rank_of(x) else 0) if k is None else int(k)
    result = _top_elements(padded, columns, ctx.attr("index_type"))
    size = xla.convert(count, ElementType.S32)
    most = scalar(size, sizes_of(x)[-1]) if row is None else row
    if k is None:
        sizes[last] = xla.clamp(scalar(size, 0), size, most)
    holds = xla.and_(xla.ge(size, scalar(size, 0)), xla.le(size, most))
    check = SizePair(size, most, InvalidArgumentError, "k is negative or greater than the rows", holds)
    return checked(ctx, [with_sizes(part, sizes) for part in result], [] if k is not None and row is None else [check])


def _least(x: XlaOp) -> XlaOp:
    """Return the value that is last in descending order; of floats, in total order."""
    return scalar(x, np.copysign(np.nan, -1.0)) if x.shape.dtype.is_float else min_value(x)


@lowering(
    "ApproxTopK",
    attrs=("k", "reduction_dimension", "is_max_k"),
)
def _approx_top_k(x: XlaOp, *, k: int, reduction_dimension: int, is_max_k: bool) -> list[XlaOp]:
    """Return the exact result, an approximation of recall 1."""
    axis = reduction_dimension % max(rank_of(x), 1)
    order = [d for d in range(rank_of(x)) if d != axis] + [axis]
    transposed = xla.transpose(x, order)
    values, indices = _top_elements(transposed if is_max_k else -transposed, k, DataType.DT_INT32)
    restored_order = [order.index(d) for d in range(rank_of(x))]
    return [xla.transpose(values if is_max_k else -values, restored_order), xla.transpose(indices, restored_order)]


@lowering("InTopKV2", const=("k",))
def _in_top_k(predictions: XlaOp, targets: XlaOp, k: Array) -> XlaOp:
    """Return whether fewer than k classes score above the target."""
    sizes = sizes_of(predictions)
    if len(sizes) != 2 or sizes_of(targets) != sizes[:1]:
        raise ShapeError(f"predictions {list(sizes)} need rows, and a target for each: {list(sizes_of(targets))}")
    repeated = xla.broadcast_in_dim(targets, sizes, (0,))
    hit = xla.eq(repeated, iota_along(targets.builder, targets.shape.dtype, sizes, 1))
    target_scores = sum_of(select(hit, predictions, zeros_like(predictions)), [1], keep=True)
    above = xla.gt(predictions, broadcast_to(target_scores, sizes))
    count = sum_of(xla.convert(above, ElementType.S64), [1])
    is_comparable = (
        reduced(xla.is_finite(predictions), "and", scalar(hit, True), [1]) if is_float(predictions) else None
    )
    result = xla.and_(reduced(hit, "or", scalar(hit, False), [1]), xla.lt(count, full_like(count, int(k))))
    return result if is_comparable is None else xla.and_(result, is_comparable)
