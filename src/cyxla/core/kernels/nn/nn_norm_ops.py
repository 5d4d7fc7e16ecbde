"""Batch normalisation and local response normalisation."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.windows import channels_back, channels_last, check_rank
from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.numeric_limits import wide_type
from cyxla.core.framework.types import as_data_type
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]

_F32 = np.float32
_FLOAT = as_data_type("float")
_X_TYPES = {"T": tuple(map(as_data_type, ("half", "bfloat16", "float"))), "U": (_FLOAT,)}


# --------------------------------------------------------------------------------------------------------- batches


def _check(x: Array, data_format: str, **vectors: Array) -> Array:
    """Return the input with channels last, after checking that each vector has one number per channel."""
    if x.ndim != len(data_format):
        raise ShapeError(f"x must have rank {len(data_format)} for {data_format}; its shape is {list(x.shape)}")
    last = channels_last(x, data_format)
    for name, vector in vectors.items():
        if vector.shape != last.shape[-1:]:
            raise ShapeError(f"{name} {list(vector.shape)} must hold one number for each of {last.shape[-1]} channels")
    return last


def _moments(x: Array) -> tuple[Array, Array, int]:
    """Return mean, variance and number of elements of each channel; mean and variance are NaN without elements."""
    rows = x.reshape(prod(x.shape[:-1]), x.shape[-1]).astype(np.float32, copy=False)
    if not len(rows):
        nothing = np.full(x.shape[-1], np.nan, np.float32)
        return nothing, nothing, 0
    mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    return mean, np.square(rows - mean).mean(axis=0, dtype=np.float64).astype(np.float32), len(rows)


def _batch_normalise(
    x: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float,
    exponential_avg_factor: float,
    data_format: str,
    is_training: bool,
) -> tuple[Array, Array, Array, Array, Array]:
    """Return the result, the running mean and variance, and the mean and variance that were applied."""
    last = _check(x, data_format, scale=scale, offset=offset)
    if not is_training or exponential_avg_factor != 1:
        _check(x, data_format, mean=mean, variance=variance)
    batch_mean, batch_variance, running = mean, variance, (mean, variance)
    if is_training:
        batch_mean, batch_variance, count = _moments(last)
        factor = _F32(exponential_avg_factor)
        unbiased = batch_variance * _F32(count / max(count - 1, 1))
        running = (batch_mean, unbiased)
        if exponential_avg_factor != 1:
            running = ((1 - factor) * mean + factor * batch_mean, (1 - factor) * variance + factor * unbiased)
    y = (last.astype(np.float32) - batch_mean) * (scale / np.sqrt(batch_variance + _F32(epsilon))) + offset
    return channels_back(y.astype(x.dtype), data_format), *running, batch_mean, batch_variance


_ATTRS = ("epsilon", "exponential_avg_factor", "data_format", "is_training")


@array_kernel("FusedBatchNorm", attrs=_ATTRS, types={"T": (_FLOAT,)})
@array_kernel("FusedBatchNormV2", attrs=_ATTRS, types=_X_TYPES)
def _batch_norm(x: Array, scale: Array, offset: Array, mean: Array, variance: Array, **attrs: Any) -> tuple[Array, ...]:
    return _batch_normalise(x, scale, offset, mean, variance, **attrs)


@array_kernel("FusedBatchNormV3", attrs=_ATTRS, types=_X_TYPES)
def _batch_norm_v3(
    x: Array, scale: Array, offset: Array, mean: Array, variance: Array, **attrs: Any
) -> tuple[Array, ...]:
    return *_batch_normalise(x, scale, offset, mean, variance, **attrs), np.zeros((), np.float32)


@array_kernel("_FusedBatchNormEx", attrs=(*_ATTRS, "activation_mode"), types=_X_TYPES)
def _batch_norm_ex(
    x: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    side: list[Array],
    *,
    activation_mode: str,
    **attrs: Any,
) -> tuple[Array, ...]:
    """Normalise, add the side inputs, and apply an activation."""
    if activation_mode not in ("Identity", "Relu"):
        raise InvalidArgumentError(f"activation_mode is {activation_mode!r}", hint='use "Identity" or "Relu"')
    y, *rest = _batch_norm_v3(x, scale, offset, mean, variance, **attrs)
    for added in side:
        y = y + added
    return np.maximum(y, 0) if activation_mode == "Relu" else y, *rest


_GRAD_ATTRS = ("epsilon", "data_format", "is_training")


def _gradients(
    grad: Array,
    x: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float,
    data_format: str,
    is_training: bool,
) -> tuple[Array, Array, Array, Array, Array]:
    """Return gradients of x, scale and offset; the last two outputs are placeholders for operands without gradient."""
    if grad.shape != x.shape:
        raise ShapeError(f"y_backprop {list(grad.shape)} and x {list(x.shape)} must have one shape")
    last = _check(x, data_format, scale=scale, reserve_space_1=mean, reserve_space_2=variance).astype(np.float32)
    dy = channels_last(grad, data_format).astype(np.float32)
    rows = tuple(range(last.ndim - 1))
    centred = last - mean
    inverse = 1 / np.sqrt(variance + _F32(epsilon))
    offset_grad = dy.sum(axis=rows, dtype=np.float64).astype(np.float32)
    projected = (dy * centred).sum(axis=rows, dtype=np.float64).astype(np.float32)
    dx: Array = dy
    if is_training:
        count = np.float32(max(dy.size // max(dy.shape[-1], 1), 1))
        dx = dy - offset_grad / count - centred * (projected / count * inverse * inverse)
    dx = dx * (scale * inverse)
    nothing = np.zeros(0 if is_training else len(scale), np.float32)
    return channels_back(dx.astype(x.dtype), data_format), projected * inverse, offset_grad, nothing, nothing


@array_kernel("FusedBatchNormGrad", attrs=_GRAD_ATTRS, types={"T": (_FLOAT,)})
@array_kernel("FusedBatchNormGradV2", attrs=_GRAD_ATTRS, types=_X_TYPES)
def _batch_norm_grad(
    grad: Array, x: Array, scale: Array, mean: Array, variance: Array, **attrs: Any
) -> tuple[Array, ...]:
    return _gradients(grad, x, scale, mean, variance, **attrs)


@array_kernel("FusedBatchNormGradV3", attrs=_GRAD_ATTRS, types=_X_TYPES)
def _batch_norm_grad_v3(
    grad: Array, x: Array, scale: Array, mean: Array, variance: Array, reserve: Array, **attrs: Any
) -> tuple[Array, ...]:
    return _gradients(grad, x, scale, mean, variance, **attrs)


@array_kernel("BatchNormWithGlobalNormalization", attrs=("variance_epsilon", "scale_after_normalization"))
def _global_normalisation(
    t: Array,
    mean: Array,
    variance: Array,
    beta: Array,
    gamma: Array,
    *,
    variance_epsilon: float,
    scale_after_normalization: bool,
) -> Array:
    last = _check(t, "NHWC", m=mean, v=variance, beta=beta, gamma=gamma)
    wide = wide_type(t.dtype)
    factor = 1 / np.sqrt(variance.astype(wide) + wide.type(variance_epsilon))
    if scale_after_normalization:
        factor = factor * gamma
    return ((last.astype(wide) - mean) * factor + beta).astype(t.dtype)


# -------------------------------------------------------------------------------------------- neighbouring channels


def _sum_neighbours(x: Array, radius: int) -> Array:
    """Sum over the channels up to `radius` away."""
    radius = min(radius, x.shape[-1])
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(radius, radius)])
    if not x.size:
        return x
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * radius + 1, axis=-1)
    return np.asarray(windows.sum(axis=-1, dtype=x.dtype))


_LRN_TYPES = {"T": tuple(map(as_data_type, ("half", "bfloat16", "float")))}
_LRN_ATTRS = ("depth_radius", "bias", "alpha", "beta")


@array_kernel("LRN", attrs=_LRN_ATTRS, types=_LRN_TYPES)
def _lrn(x: Array, *, depth_radius: int, bias: float, alpha: float, beta: float) -> Array:
    """Normalise by Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", 2012, 3.3."""
    check_rank(x, 4, "the input")
    _check_radius(depth_radius)
    wide = x.astype(np.float32)
    norm = _F32(bias) + _F32(alpha) * _sum_neighbours(wide * wide, depth_radius)
    with np.errstate(all="ignore"):
        return (wide * norm ** _F32(-beta)).astype(x.dtype)


@array_kernel("LRNGrad", attrs=_LRN_ATTRS, types=_LRN_TYPES)
def _lrn_grad(
    grads: Array, x: Array, output: Array, *, depth_radius: int, bias: float, alpha: float, beta: float
) -> Array:
    check_rank(grads, 4, "input_grads")
    _check_radius(depth_radius)
    if not grads.shape == x.shape == output.shape:
        raise ShapeError(f"grads {list(grads.shape)}, image {list(x.shape)}, output {list(output.shape)} must be alike")
    wide, dy = x.astype(np.float32), grads.astype(np.float32)
    norm = _F32(bias) + _F32(alpha) * _sum_neighbours(wide * wide, depth_radius)
    with np.errstate(all="ignore"):
        neighbour_sums = _sum_neighbours(dy * output.astype(np.float32) / norm, depth_radius)
        return (dy * norm ** _F32(-beta) - _F32(2 * alpha * beta) * wide * neighbour_sums).astype(x.dtype)


def _check_radius(radius: int) -> None:
    if radius < 0:
        raise InvalidArgumentError(f"depth_radius must not be negative; it is {radius}")
