"""Batch normalisation and local response normalisation."""

from __future__ import annotations

from math import prod
from typing import Any

from cyxla.core.framework.geometry.windows import is_channels_first
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.tf2xla.lib.typed_values import full
from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import full_like, rank_of, scalar, sizes_of, sum_of, widened, zeros_like

_F32 = ElementType.F32


def _feature(x: XlaOp, data_format: str) -> int:
    """Return the dimension number of the channels."""
    if rank_of(x) != len(data_format):
        raise ShapeError(f"x must have rank {len(data_format)} for {data_format}; its shape is {list(sizes_of(x))}")
    return 1 if is_channels_first(data_format) else rank_of(x) - 1


def _check(x: XlaOp, feature: int, **vectors: XlaOp) -> None:
    for name, vector in vectors.items():
        if sizes_of(vector) != (sizes_of(x)[feature],):
            raise ShapeError(
                f"{name} {list(sizes_of(vector))} must hold one number for each of {sizes_of(x)[feature]} channels"
            )


def _broadcast_channels(vector: XlaOp, x: XlaOp, feature: int) -> XlaOp:
    """Broadcast a vector of channels."""
    return xla.broadcast_in_dim(vector, sizes_of(x), (feature,))


def _batch_normalise(
    x: XlaOp,
    scale: XlaOp,
    offset: XlaOp,
    mean: XlaOp,
    variance: XlaOp,
    *,
    epsilon: float,
    exponential_avg_factor: float,
    data_format: str,
    is_training: bool,
) -> list[XlaOp]:
    """Emit a batch-norm-training or batch-norm-inference in f32, and update the running statistics."""
    feature = _feature(x, data_format)
    _check(x, feature, scale=scale, offset=offset)
    wide = xla.convert(x, _F32)
    if not is_training:
        _check(x, feature, mean=mean, variance=variance)
        y = xla.batch_norm_inference(wide, scale, offset, mean, variance, epsilon, feature)
        return [xla.convert(y, x.shape.dtype), mean, variance, mean, variance]
    result = xla.batch_norm_training(wide, scale, offset, epsilon, feature)
    y, batch_mean, batch_variance = (xla.get_tuple_element(result, i) for i in range(3))
    count = prod(sizes_of(x)) // max(sizes_of(x)[feature], 1)
    unbiased = batch_variance * scalar(batch_variance, count / max(count - 1, 1))
    running = [batch_mean, unbiased]
    if exponential_avg_factor != 1:
        _check(x, feature, mean=mean, variance=variance)
        old, new = scalar(batch_mean, 1 - exponential_avg_factor), scalar(batch_mean, exponential_avg_factor)
        running = [mean * old + batch_mean * new, variance * old + unbiased * new]
    return [xla.convert(y, x.shape.dtype), *running, batch_mean, batch_variance]


_ATTRS = ("epsilon", "exponential_avg_factor", "data_format", "is_training")
lowering(("FusedBatchNorm", "FusedBatchNormV2"), _batch_normalise, attrs=_ATTRS)


@lowering("FusedBatchNormV3", attrs=_ATTRS)
def _batch_norm_v3(x: XlaOp, *operands: XlaOp, **attrs: Any) -> list[XlaOp]:
    """Normalise with statistics in f32, converted to their own type afterwards."""
    kind = operands[0].shape.dtype
    y, *rest = _batch_normalise(x, *map(widened, operands), **attrs)
    rest.append(full(x.builder, 0, DataType.DT_FLOAT, ()))
    return [y, *(v if kind is _F32 else xla.convert(v, kind) for v in rest)]


@lowering("_FusedBatchNormEx", attrs=(*_ATTRS, "activation_mode"))
def _batch_norm_ex(
    x: XlaOp,
    scale: XlaOp,
    offset: XlaOp,
    mean: XlaOp,
    variance: XlaOp,
    side_input: list[XlaOp],
    *,
    activation_mode: str,
    **attrs: Any,
) -> list[XlaOp]:
    if activation_mode not in ("Identity", "Relu"):
        raise InvalidArgumentError(f"activation_mode is {activation_mode!r}", hint='use "Identity" or "Relu"')
    y, *rest = _batch_norm_v3(x, scale, offset, mean, variance, **attrs)
    for added in side_input:
        y = y + added
    return [xla.maximum(y, zeros_like(y)) if activation_mode == "Relu" else y, *rest]


def _gradients(
    grad: XlaOp,
    x: XlaOp,
    scale: XlaOp,
    mean: XlaOp,
    variance: XlaOp,
    *_: XlaOp,
    epsilon: float,
    data_format: str,
    is_training: bool,
) -> list[XlaOp]:
    """Emit a batch-norm-grad in training, else sums and products."""
    if sizes_of(grad) != sizes_of(x):
        raise ShapeError(f"y_backprop {list(sizes_of(grad))} and x {list(sizes_of(x))} must have one shape")
    feature = _feature(x, data_format)
    _check(x, feature, scale=scale, reserve_space_1=mean, reserve_space_2=variance)
    wide, dy = xla.convert(x, _F32), xla.convert(grad, _F32)
    count = 0 if is_training else sizes_of(x)[feature]
    nothing = full(x.builder, 0, DataType.DT_FLOAT, (count,))
    if is_training:
        result = xla.batch_norm_grad(wide, scale, mean, variance, dy, epsilon, feature)
        dx, dscale, doffset = (xla.get_tuple_element(result, i) for i in range(3))
        return [xla.convert(dx, x.shape.dtype), dscale, doffset, nothing, nothing]
    rows = [d for d in range(rank_of(x)) if d != feature]
    inverse = xla.rsqrt(variance + full_like(variance, epsilon))
    dscale = sum_of(dy * (wide - _broadcast_channels(mean, wide, feature)), rows) * inverse
    dx = dy * _broadcast_channels(scale * inverse, wide, feature)
    return [xla.convert(dx, x.shape.dtype), dscale, sum_of(dy, rows), nothing, nothing]


lowering(
    ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"),
    _gradients,
    attrs=("epsilon", "data_format", "is_training"),
)


# ------------------------------------------------------------------------------------- local response normalisation

_LRN = ("depth_radius", "bias", "alpha", "beta")


def _sum_neighbours(x: XlaOp, radius: int) -> XlaOp:
    """Emit a reduce-window that sums over channels."""
    size = 2 * radius + 1
    computation = scalar_computation("add", x.shape.dtype)
    pads = [(0, 0)] * 3 + [(radius, radius)]
    return xla.reduce_window(x, scalar(x, 0), computation, [1, 1, 1, size], [1] * 4, pads)


def _norm(x: XlaOp, radius: int, bias: float, alpha: float) -> XlaOp:
    if rank_of(x) != 4:
        raise ShapeError(f"the input must have rank 4; its shape is {list(sizes_of(x))}")
    if radius < 0:
        raise InvalidArgumentError(f"depth_radius must not be negative; it is {radius}")
    return full_like(x, bias) + full_like(x, alpha) * _sum_neighbours(x * x, radius)


@lowering("LRN", attrs=_LRN)
def _lrn(x: XlaOp, *, depth_radius: int, bias: float, alpha: float, beta: float) -> XlaOp:
    wide = xla.convert(x, _F32)
    norm = _norm(wide, depth_radius, bias, alpha)
    return xla.convert(wide * xla.power(norm, full_like(norm, -beta)), x.shape.dtype)


@lowering("LRNGrad", attrs=_LRN)
def _lrn_grad(
    grads: XlaOp, x: XlaOp, output: XlaOp, *, depth_radius: int, bias: float, alpha: float, beta: float
) -> XlaOp:
    if not sizes_of(grads) == sizes_of(x) == sizes_of(output):
        raise ShapeError(f"grads {list(sizes_of(grads))}, image {list(sizes_of(x))} and output must have one shape")
    wide, dy, y = (xla.convert(v, _F32) for v in (x, grads, output))
    norm = _norm(wide, depth_radius, bias, alpha)
    shared = _sum_neighbours(dy * y / norm, depth_radius)
    result = dy * xla.power(norm, full_like(norm, -beta)) - full_like(wide, 2 * alpha * beta) * wide * shared
    return xla.convert(result, x.shape.dtype)
