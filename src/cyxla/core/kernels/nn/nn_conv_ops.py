"""Convolutions and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.image_resizing import checked_size, grids
from cyxla.core.framework.geometry.pad_and_transpose import mirrored, pads_of
from cyxla.core.framework.geometry.windows import (
    Windows,
    channels_back,
    channels_last,
    check_explicit,
    check_rank,
    check_steps,
    spatial,
)
from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.numeric_limits import lowest, wide_type
from cyxla.core.framework.types import FLOATING, as_data_type
from cyxla.core.kernels.lib.convolution import convolve, gradient_of_input, gradient_of_kernel
from cyxla.core.kernels.lib.fused_epilogue import FUSED_ATTRS, apply_fused_ops
from cyxla.errors import InvalidArgumentError, OpError, ShapeError, UnimplementedError

Array = np.ndarray[Any, Any]
Numbers = Sequence[int]

_INT32 = as_data_type("int32")
_ATTRS = ("strides", "padding", "explicit_paddings", "data_format", "dilations")


def _windows(
    sizes: Numbers,
    kernel: Numbers,
    strides: Numbers,
    padding: str,
    explicit: Numbers,
    data_format: str,
    dilations: Numbers,
    error: type[OpError] = InvalidArgumentError,
) -> Windows:
    rank = len(sizes) + 2
    steps = check_steps(strides, "strides", rank, data_format, error)
    rates = check_steps(dilations or (1,) * rank, "dilations", rank, data_format, error)
    return Windows.of(sizes, kernel, steps, rates, padding, check_explicit(padding, explicit, rank, data_format))


def _groups(channels: int, kernel: Numbers) -> int:
    """Return the number of groups for a kernel [.., channels of a group, results]."""
    inputs, results = kernel[-2], kernel[-1]
    if not inputs or channels % inputs:
        raise InvalidArgumentError(f"{channels} channels are not a multiple of the {inputs} of a kernel {list(kernel)}")
    groups = channels // inputs
    if groups and results % groups:
        raise InvalidArgumentError(
            f"{results} results cannot be divided into {groups} groups; the kernel is {list(kernel)}"
        )
    return groups


def _sizes_of(operand: Array, rank: int, name: str) -> list[int]:
    if operand.ndim != 1 or len(operand) != rank:
        raise ShapeError(f"{name} must hold {rank} sizes; its shape is {list(operand.shape)}")
    return [int(n) for n in operand]


def _check_grad(grad: Array, batch: int, out: Numbers, results: int) -> None:
    expected = (batch, *out, results)
    if grad.shape != expected:
        raise ShapeError(
            f"out_backprop, channels last, is {list(grad.shape)}; the sizes and strides give {list(expected)}"
        )


def _forward(rank: int, error: type[OpError]) -> Callable[..., Array]:
    def conv(
        x: Array,
        kernel: Array,
        *,
        strides: Numbers,
        padding: str,
        explicit_paddings: Numbers = (),
        data_format: str,
        dilations: Numbers,
    ) -> Array:
        check_rank(x, rank, "input")
        check_rank(kernel, rank, "filter")
        last = channels_last(x, data_format)
        geometry = (strides, padding, explicit_paddings, data_format, dilations, error)
        windows = _windows(last.shape[1:-1], kernel.shape[:-2], *geometry)
        groups = _groups(last.shape[-1], kernel.shape)
        return channels_back(convolve(last, kernel, windows, groups), data_format)

    return conv


def _input_gradient(rank: int) -> Callable[..., Array]:
    def gradient(
        sizes: Array,
        kernel: Array,
        grad: Array,
        *,
        strides: Numbers,
        padding: str,
        explicit_paddings: Numbers = (),
        data_format: str,
        dilations: Numbers,
    ) -> Array:
        check_rank(kernel, rank, "filter")
        check_rank(grad, rank, "out_backprop")
        shape = _input_shape(sizes, rank, kernel, data_format)
        windows = _windows(shape[1:-1], kernel.shape[:-2], strides, padding, explicit_paddings, data_format, dilations)
        last = channels_last(grad, data_format)
        groups = _groups(shape[-1], kernel.shape)
        _check_grad(last, shape[0], windows.out, kernel.shape[-1])
        return channels_back(gradient_of_input(last, kernel, windows, shape[-1], groups), data_format)

    return gradient


def _input_shape(sizes: Array, rank: int, kernel: Array, data_format: str) -> list[int]:
    """Return the input's channels-last shape; `input_sizes` may omit batch and channels."""
    given_sizes = _sizes_of(sizes, rank, "input_sizes")
    return [
        given_sizes[0],
        *spatial(given_sizes, data_format),
        given_sizes[-1] if data_format[1] != "C" else given_sizes[1],
    ]


def _kernel_gradient(rank: int) -> Callable[..., Array]:
    def gradient(
        x: Array,
        sizes: Array,
        grad: Array,
        *,
        strides: Numbers,
        padding: str,
        explicit_paddings: Numbers = (),
        data_format: str,
        dilations: Numbers,
    ) -> Array:
        check_rank(x, rank, "input")
        check_rank(grad, rank, "out_backprop")
        shape = _sizes_of(sizes, rank, "filter_sizes")
        images, grads = channels_last(x, data_format), channels_last(grad, data_format)
        windows = _windows(images.shape[1:-1], shape[:-2], strides, padding, explicit_paddings, data_format, dilations)
        groups = _groups(images.shape[-1], shape)
        _check_grad(grads, images.shape[0], windows.out, shape[-1])
        return gradient_of_kernel(images, grads, windows, groups)

    return gradient


_3D = ("strides", "padding", "data_format", "dilations")
array_kernel("Conv2D", _forward(4, UnimplementedError), attrs=_ATTRS, types={"T": (*FLOATING, _INT32)})
array_kernel("Conv2DBackpropInput", _input_gradient(4), attrs=_ATTRS, types={"T": (*FLOATING, _INT32)})
array_kernel("Conv2DBackpropFilter", _kernel_gradient(4), attrs=_ATTRS, types={"T": FLOATING})
array_kernel("Conv3D", _forward(5, InvalidArgumentError), attrs=_3D, types={"T": FLOATING})
array_kernel("Conv3DBackpropInputV2", _input_gradient(5), attrs=_3D, types={"T": FLOATING})
array_kernel("Conv3DBackpropFilterV2", _kernel_gradient(5), attrs=_3D, types={"T": FLOATING})


# ---------------------------------------------------------------------------------- shapes taken from filter or input


@array_kernel("Conv2DBackpropInputV2", attrs=_ATTRS, types={"T": (*FLOATING, _INT32)})
def _input_gradient_v2(x: Array, kernel: Array, grad: Array, **attrs: Any) -> Array:
    return _input_gradient(4)(np.array(x.shape, np.int32), kernel, grad, **attrs)


@array_kernel("Conv2DBackpropFilterV2", attrs=_ATTRS, types={"T": FLOATING})
def _kernel_gradient_v2(x: Array, kernel: Array, grad: Array, **attrs: Any) -> Array:
    return _kernel_gradient(4)(x, np.array(kernel.shape, np.int32), grad, **attrs)


@array_kernel(
    "Conv",
    attrs=("strides", "padding", "explicit_paddings", "data_format", "dilations", "batch_dims", "groups"),
    types={"T": (*FLOATING, _INT32)},
)
def _conv(
    x: Array,
    kernel: Array,
    *,
    strides: Numbers,
    padding: str,
    explicit_paddings: Numbers,
    data_format: str,
    dilations: Numbers,
    batch_dims: int,
    groups: int,
) -> Array:
    """Convolve over two or three spatial dimensions; the first `batch_dims` dimensions form the batch."""
    if batch_dims < 1 or x.ndim - batch_dims - 1 not in (2, 3):
        raise InvalidArgumentError(f"an input of rank {x.ndim} with {batch_dims} batch dimensions is not 2-D or 3-D")
    flat = x.reshape(prod(x.shape[:batch_dims]), *x.shape[batch_dims:])
    check_rank(kernel, flat.ndim, "filter")
    last = channels_last(flat, data_format)
    geometry = (strides, padding, explicit_paddings, data_format, dilations, InvalidArgumentError)
    windows = _windows(last.shape[1:-1], kernel.shape[:-2], *geometry)
    if _groups(last.shape[-1], kernel.shape) != groups and last.size:
        raise InvalidArgumentError(f"{last.shape[-1]} channels in {groups} groups do not fit a kernel {kernel.shape}")
    result = channels_back(convolve(last, kernel, windows, groups), data_format)
    return result.reshape(*x.shape[:batch_dims], *result.shape[1:])


# ------------------------------------------------------------------------------------------------------- depthwise


def _depthwise_geometry(
    x_shape: Numbers, kernel: Numbers, strides: Numbers, padding: str, explicit: Numbers, layout: str, rates: Numbers
) -> Windows:
    """Return the windows for a channels-last input and a kernel [height, width, channels, multiplier]."""
    if kernel[2] != x_shape[-1]:
        raise InvalidArgumentError(
            f"the filter {list(kernel)} is for {kernel[2]} channels; the input has {x_shape[-1]}"
        )
    steps = spatial(strides, layout) if len(strides) == 4 else []
    if len(set(steps)) > 1:
        raise InvalidArgumentError(f"strides must be equal in height and width; they are {list(strides)}")
    return _windows(x_shape[1:-1], kernel[:2], strides, padding, explicit, layout, rates)


def _as_groups(kernel: Array) -> Array:
    """Reshape [h, w, channels, multiplier] to [h, w, 1, results], the kernel for one group per channel."""
    return kernel.reshape(*kernel.shape[:2], 1, kernel.shape[2] * kernel.shape[3])


@array_kernel("DepthwiseConv2dNative", attrs=_ATTRS, types={"T": FLOATING})
def _depthwise(
    x: Array,
    kernel: Array,
    *,
    strides: Numbers,
    padding: str,
    explicit_paddings: Numbers,
    data_format: str,
    dilations: Numbers,
) -> Array:
    check_rank(x, 4, "input")
    check_rank(kernel, 4, "filter")
    last = channels_last(x, data_format)
    geometry = (strides, padding, explicit_paddings, data_format, dilations)
    windows = _depthwise_geometry(last.shape, kernel.shape, *geometry)
    return channels_back(convolve(last, _as_groups(kernel), windows, last.shape[-1]), data_format)


@array_kernel("DepthwiseConv2dNativeBackpropInput", attrs=_ATTRS, types={"T": FLOATING})
def _depthwise_input_gradient(
    sizes: Array,
    kernel: Array,
    grad: Array,
    *,
    strides: Numbers,
    padding: str,
    explicit_paddings: Numbers,
    data_format: str,
    dilations: Numbers,
) -> Array:
    check_rank(kernel, 4, "filter")
    check_rank(grad, 4, "out_backprop")
    shape = _input_shape(sizes, 4, kernel, data_format)
    geometry = (strides, padding, explicit_paddings, data_format, dilations)
    windows = _depthwise_geometry(shape, kernel.shape, *geometry)
    last = channels_last(grad, data_format)
    _check_grad(last, shape[0], windows.out, kernel.shape[2] * kernel.shape[3])
    return channels_back(gradient_of_input(last, _as_groups(kernel), windows, shape[-1], shape[-1]), data_format)


@array_kernel("DepthwiseConv2dNativeBackpropFilter", attrs=_ATTRS, types={"T": FLOATING})
def _depthwise_kernel_gradient(
    x: Array,
    sizes: Array,
    grad: Array,
    *,
    strides: Numbers,
    padding: str,
    explicit_paddings: Numbers,
    data_format: str,
    dilations: Numbers,
) -> Array:
    check_rank(x, 4, "input")
    check_rank(grad, 4, "out_backprop")
    shape = _sizes_of(sizes, 4, "filter_sizes")
    images, grads = channels_last(x, data_format), channels_last(grad, data_format)
    geometry = (strides, padding, explicit_paddings, data_format, dilations)
    windows = _depthwise_geometry(images.shape, shape, *geometry)
    _check_grad(grads, images.shape[0], windows.out, shape[2] * shape[3])
    return gradient_of_kernel(images, grads, windows, images.shape[-1]).reshape(shape)


# ------------------------------------------------------------------------------------------------------------ fused


def _apply_epilogue(result: Array, args: list[Array], data_format: str, fused: dict[str, Any]) -> Array:
    """Apply fused ops; an extra input with the rank of the result has its layout."""
    last = channels_last(result, data_format)
    extra = [channels_last(x, data_format) if x.ndim == result.ndim else x for x in args]
    return channels_back(apply_fused_ops(last, extra, **fused), data_format)


@array_kernel("_FusedConv2D", attrs=(*_ATTRS, "filter_format", *FUSED_ATTRS), types={"T": FLOATING})
def _fused_conv(
    x: Array,
    kernel: Array,
    args: list[Array],
    host_args: list[Array],
    *,
    filter_format: str,
    fused_ops: Sequence[str],
    epsilon: float,
    leakyrelu_alpha: float,
    **attrs: Any,
) -> Array:
    layout = attrs["data_format"]
    if filter_format != "HWIO" or layout not in ("NHWC", "NCHW") or host_args:
        raise UnimplementedError(f"_FusedConv2D with data_format {layout}, filter_format {filter_format} or host_args")
    fused = {"fused_ops": fused_ops, "epsilon": epsilon, "leakyrelu_alpha": leakyrelu_alpha}
    return _apply_epilogue(_forward(4, UnimplementedError)(x, kernel, **attrs), args, layout, fused)


@array_kernel(
    "_FusedDepthwiseConv2dNative",
    attrs=("strides", "padding", "data_format", "dilations", *FUSED_ATTRS),
    types={"T": FLOATING},
)
def _fused_depthwise(
    x: Array,
    kernel: Array,
    args: list[Array],
    *,
    fused_ops: Sequence[str],
    epsilon: float,
    leakyrelu_alpha: float,
    **attrs: Any,
) -> Array:
    fused = {"fused_ops": fused_ops, "epsilon": epsilon, "leakyrelu_alpha": leakyrelu_alpha}
    return _apply_epilogue(_depthwise(x, kernel, explicit_paddings=(), **attrs), args, attrs["data_format"], fused)


# --------------------------------------------------------------------------------------------------------- dilation


@array_kernel("Dilation2D", attrs=("strides", "rates", "padding"))
def _dilation(x: Array, kernel: Array, *, strides: Numbers, rates: Numbers, padding: str) -> Array:
    """Compute grey-scale dilation: the maximum over a window of elements plus filter."""
    check_rank(x, 4, "input")
    check_rank(kernel, 3, "filter")
    if kernel.shape[2] != x.shape[3]:
        raise InvalidArgumentError(f"the filter {list(kernel.shape)} does not match the input's {x.shape[3]} channels")
    windows = _windows(x.shape[1:3], kernel.shape[:2], strides, padding, (), "NHWC", rates)
    least = lowest(x.dtype)
    padded = windows.padded(x, least)
    inside = windows.padded(np.ones((1, *x.shape[1:3], 1), bool), False)
    result = np.full((x.shape[0], *windows.out, x.shape[3]), least, x.dtype)
    for tap, at in windows.taps():
        with np.errstate(over="ignore"):
            window = np.where(inside[at], padded[at] + kernel[tap], least)
        result = np.maximum(result, window)
    return result


# ------------------------------------------------------------------------------------------ resized and mirrored inputs
_NHWC = {"data_format": "NHWC", "dilations": (1, 1, 1, 1)}


@array_kernel("FusedPadConv2D", attrs=("mode", "strides", "padding"), types={"T": FLOATING})
def _padded_conv(x: Array, paddings: Array, kernel: Array, *, mode: str, **attrs: Any) -> Array:
    """Mirror at the edges, and convolve."""
    check_rank(x, 4, "input")
    pads_of(x.ndim, paddings)
    padded = x[np.ix_(*mirrored(paddings, mode, x.shape))]
    return _forward(4, UnimplementedError)(padded, kernel, **attrs, **_NHWC)


@array_kernel(
    "FusedResizeAndPadConv2D", attrs=("resize_align_corners", "mode", "strides", "padding"), types={"T": FLOATING}
)
def _resized_conv(
    x: Array, size: Array, paddings: Array, kernel: Array, *, resize_align_corners: bool, **attrs: Any
) -> Array:
    """Resize by linear interpolation in the type of the input, mirror at the edges, and convolve."""
    check_rank(x, 4, "input")
    rows, columns = grids(x.shape[1:3], checked_size(x, size), resize_align_corners, False)
    wide = x.astype(wide_type(x.dtype))
    for axis, grid in ((2, columns), (1, rows)):
        below, above, part = grid.linear()
        low, high = np.take(wide, below, axis), np.take(wide, above, axis)
        wide = low + (high - low) * np.expand_dims(part.astype(wide.dtype), tuple(range(1, 4 - axis)))
    return _padded_conv(wide.astype(x.dtype), paddings, kernel, **attrs)
