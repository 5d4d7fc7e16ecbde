"""Convolutions and their gradients, each of which is one HLO convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.windows import Windows, check_explicit, check_steps, is_channels_first, spatial
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, OpError, ShapeError, UnimplementedError
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, lowering, xla_kernel
from cyxla.types import ElementType
from cyxla.xla.hlo.attributes import ConvDims
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import is_narrow, rank_of, scalar, sizes_of, widened, zeros_like

Array = np.ndarray[Any, Any]
Numbers = Sequence[int]


def layout(data_format: str, rank: int) -> tuple[int, int, tuple[int, ...]]:
    """Return the dimension numbers of batch, channels and spatial dimensions."""
    if is_channels_first(data_format):
        return 0, 1, tuple(range(2, rank))
    return 0, rank - 1, tuple(range(1, rank - 1))


class Geometry:
    """Window geometry and HLO dimension numbers of a convolution node.

    Parameters
    ----------
    shape, kernel : sequence of int
        Sizes of the input in its data format, and of the filter [*window, channels of a group, results].
    """

    def __init__(
        self,
        shape: Numbers,
        kernel: Numbers,
        strides: Numbers,
        padding: str,
        explicit: Numbers,
        data_format: str,
        dilations: Numbers,
        error: type[OpError] = InvalidArgumentError,
    ) -> None:
        rank = len(shape)
        steps = check_steps(strides, "strides", rank, data_format, error)
        dilations = check_steps(dilations or (1,) * rank, "dilations", rank, data_format, error)
        pairs = check_explicit(padding, explicit, rank, data_format)
        self.batch, self.feature, self.spatial = layout(data_format, rank)
        self.windows = Windows.of(spatial(shape, data_format), kernel[:-2], steps, dilations, padding, pairs)
        channels = shape[self.feature]
        if not kernel[-2] or channels % kernel[-2] or (channels and kernel[-1] % (channels // kernel[-2])):
            raise InvalidArgumentError(f"{channels} channels do not fit a filter {list(kernel)}")
        self.groups = max(channels // kernel[-2], 1)
        self.kernel_spatial = tuple(range(len(kernel) - 2))

    def check_grad(self, grad: XlaOp, batch: int, results: int) -> None:
        """Raise if the gradient has another shape than the result."""
        expected = [0] * rank_of(grad)
        expected[self.batch], expected[self.feature] = batch, results
        for d, n in zip(self.spatial, self.windows.out, strict=True):
            expected[d] = n
        if list(sizes_of(grad)) != expected:
            raise ShapeError(f"out_backprop is {list(sizes_of(grad))}; the sizes and strides give {expected}")

    def forward(self, x: XlaOp, kernel: XlaOp) -> XlaOp:
        """Emit the convolution."""
        n = len(self.spatial)
        dims = ConvDims(
            self.batch,
            self.feature,
            self.spatial,
            n,
            n + 1,
            self.kernel_spatial,
            self.batch,
            self.feature,
            self.spatial,
        )
        w = self.windows
        return _convolve(x, kernel, w.strides, w.pads, None, w.dilations, dims, self.groups)

    def input_gradient(self, grad: XlaOp, kernel: XlaOp) -> XlaOp:
        """Emit a convolution of the gradient, dilated by the strides, with the reversed filter."""
        w, n = self.windows, len(self.spatial)
        pads = []
        for size, k, stride, dilation, (low, _), out in zip(
            w.sizes, w.kernel, w.strides, w.dilations, w.pads, w.out, strict=True
        ):
            extent = (k - 1) * dilation
            before = extent - low
            pads.append((before, size + extent - before - ((out - 1) * stride + 1) if out else size + extent - before))
        reversed_kernel = self._exchange_features(xla.reverse(kernel, self.kernel_spatial))
        dims = ConvDims(
            self.batch,
            self.feature,
            self.spatial,
            n,
            n + 1,
            self.kernel_spatial,
            self.batch,
            self.feature,
            self.spatial,
        )
        return _convolve(grad, reversed_kernel, (1,) * n, pads, w.strides, w.dilations, dims, self.groups)

    def _exchange_features(self, kernel: XlaOp) -> XlaOp:
        """Transpose [*window, channels of a group, results] to [*window, results of a group, channels]."""
        *window, inputs, results = sizes_of(kernel)
        n, per_group = len(window), results // self.groups
        parts = xla.reshape(kernel, (*window, inputs, self.groups, per_group))
        transposed = xla.transpose(parts, [*range(n), n + 2, n + 1, n])
        return xla.reshape(transposed, (*window, per_group, self.groups * inputs))

    def kernel_gradient(self, x: XlaOp, grad: XlaOp) -> XlaOp:
        """Emit a convolution of the input by the gradient, with batch and channels exchanged."""
        w, n = self.windows, len(self.spatial)
        pads = []
        for size, k, stride, dilation, (low, _), out in zip(
            w.sizes, w.kernel, w.strides, w.dilations, w.pads, w.out, strict=True
        ):
            pads.append((low, (out - 1) * stride + (k - 1) * dilation + 1 - size - low))
        dims = ConvDims(
            self.feature,
            self.batch,
            self.spatial,
            self.batch,
            self.feature,
            self.spatial,
            n,
            n + 1,
            self.kernel_spatial,
        )
        return _convolve(x, grad, w.dilations, pads, None, w.strides, dims, 1, self.groups)


def _convolve(
    lhs: XlaOp,
    rhs: XlaOp,
    strides: Numbers,
    pads: Sequence[tuple[int, int]],
    lhs_dilation: Numbers | None,
    rhs_dilation: Numbers,
    dims: ConvDims,
    groups: int,
    batch_groups: int = 1,
) -> XlaOp:
    wide = xla.conv_general_dilated(
        widened(lhs), widened(rhs), strides, pads, lhs_dilation, rhs_dilation, dims, groups, batch_groups
    )
    return xla.convert(wide, lhs.shape.dtype) if is_narrow(lhs) else wide


def _check_rank(x: XlaOp, rank: int, name: str) -> None:
    if rank_of(x) != rank:
        raise ShapeError(f"{name} must have rank {rank}; its shape is {list(sizes_of(x))}")


def _sizes(operand: Array, rank: int, name: str) -> list[int]:
    if operand.shape != (rank,):
        raise ShapeError(f"{name} must hold {rank} sizes; its shape is {list(operand.shape)}")
    return [int(n) for n in operand]


def _register(rank: int, forward: str, by_input: str, by_kernel: str, error: type[OpError]) -> None:
    attrs = ("strides", "padding", "data_format", "dilations") + (("explicit_paddings",) if rank == 4 else ())

    def geometry(shape: Numbers, kernel: Numbers, attr_values: dict[str, Any], error: type[OpError]) -> Geometry:
        explicit = attr_values.get("explicit_paddings", ())
        parts = (
            attr_values["strides"],
            attr_values["padding"],
            explicit,
            attr_values["data_format"],
            attr_values["dilations"],
        )
        return Geometry(shape, kernel, *parts, error)

    @lowering(forward, attrs=attrs)
    def conv(x: XlaOp, kernel: XlaOp, **attr_values: Any) -> XlaOp:
        _check_rank(x, rank, "input")
        _check_rank(kernel, rank, "filter")
        return geometry(sizes_of(x), sizes_of(kernel), attr_values, error).forward(x, kernel)

    @lowering(by_input, attrs=attrs, const=("input_sizes",))
    def input_gradient(sizes: Array, kernel: XlaOp, grad: XlaOp, **attr_values: Any) -> XlaOp:
        _check_rank(kernel, rank, "filter")
        _check_rank(grad, rank, "out_backprop")
        shape = _sizes(sizes, rank, "input_sizes")
        conv_geometry = geometry(shape, sizes_of(kernel), attr_values, InvalidArgumentError)
        conv_geometry.check_grad(grad, shape[0], sizes_of(kernel)[-1])
        return conv_geometry.input_gradient(grad, kernel)

    @lowering(by_kernel, attrs=attrs, const=("filter_sizes",))
    def kernel_gradient(x: XlaOp, sizes: Array, grad: XlaOp, **attr_values: Any) -> XlaOp:
        _check_rank(x, rank, "input")
        _check_rank(grad, rank, "out_backprop")
        kernel = _sizes(sizes, rank, "filter_sizes")
        conv_geometry = geometry(sizes_of(x), kernel, attr_values, InvalidArgumentError)
        conv_geometry.check_grad(grad, sizes_of(x)[0], kernel[-1])
        return conv_geometry.kernel_gradient(x, grad)


_register(4, "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", UnimplementedError)
_register(5, "Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2", InvalidArgumentError)


# ------------------------------------------------------------------------------------------------------- depthwise

_ATTRS = ("strides", "padding", "explicit_paddings", "data_format", "dilations")


def _depthwise(shape: Numbers, kernel: Numbers, attrs: dict[str, Any]) -> Geometry:
    """Return the geometry with one group per channel."""
    data_format = attrs["data_format"]
    channels = shape[layout(data_format, 4)[1]]
    if len(kernel) != 4 or kernel[2] != channels:
        raise InvalidArgumentError(f"the filter {list(kernel)} is not for the input's {channels} channels")
    if len(attrs["strides"]) == 4 and len(set(spatial(attrs["strides"], data_format))) > 1:
        raise InvalidArgumentError(f"strides must be equal in height and width; they are {list(attrs['strides'])}")
    parts = (attrs["strides"], attrs["padding"], attrs["explicit_paddings"], data_format, attrs["dilations"])
    return Geometry(shape, (*kernel[:2], 1, kernel[2] * kernel[3]), *parts)


def _as_groups(kernel: XlaOp) -> XlaOp:
    h, w, channels, multiplier = sizes_of(kernel)
    return xla.reshape(kernel, (h, w, 1, channels * multiplier))


@lowering("DepthwiseConv2dNative", attrs=_ATTRS)
def _depthwise_conv(x: XlaOp, kernel: XlaOp, **attrs: Any) -> XlaOp:
    _check_rank(x, 4, "input")
    _check_rank(kernel, 4, "filter")
    return _depthwise(sizes_of(x), sizes_of(kernel), attrs).forward(x, _as_groups(kernel))


@lowering("DepthwiseConv2dNativeBackpropInput", attrs=_ATTRS, const=("input_sizes",))
def _depthwise_input_gradient(sizes: Array, kernel: XlaOp, grad: XlaOp, **attrs: Any) -> XlaOp:
    _check_rank(kernel, 4, "filter")
    _check_rank(grad, 4, "out_backprop")
    shape = _sizes(sizes, 4, "input_sizes")
    geometry = _depthwise(shape, sizes_of(kernel), attrs)
    geometry.check_grad(grad, shape[0], sizes_of(kernel)[2] * sizes_of(kernel)[3])
    return geometry.input_gradient(grad, _as_groups(kernel))


@lowering("DepthwiseConv2dNativeBackpropFilter", attrs=_ATTRS, const=("filter_sizes",))
def _depthwise_kernel_gradient(x: XlaOp, sizes: Array, grad: XlaOp, **attrs: Any) -> XlaOp:
    _check_rank(x, 4, "input")
    _check_rank(grad, 4, "out_backprop")
    kernel = _sizes(sizes, 4, "filter_sizes")
    geometry = _depthwise(sizes_of(x), kernel, attrs)
    geometry.check_grad(grad, sizes_of(x)[0], kernel[2] * kernel[3])
    return xla.reshape(geometry.kernel_gradient(x, grad), kernel)


# --------------------------------------------------------------------------------------------- convolution of any rank


@lowering("Conv", attrs=("strides", "padding", "explicit_paddings", "data_format", "dilations", "batch_dims", "groups"))
def _conv(x: XlaOp, kernel: XlaOp, *, batch_dims: int, groups: int, **attrs: Any) -> XlaOp:
    if batch_dims < 1 or rank_of(x) - batch_dims - 1 not in (2, 3):
        raise InvalidArgumentError(f"rank {rank_of(x)} with {batch_dims} batch dimensions is not 2-D or 3-D")
    outer = sizes_of(x)[:batch_dims]
    flat = xla.reshape(x, (int(np.prod(outer, dtype=np.int64)), *sizes_of(x)[batch_dims:]))
    _check_rank(kernel, rank_of(flat), "filter")
    parts = (attrs["strides"], attrs["padding"], attrs["explicit_paddings"], attrs["data_format"], attrs["dilations"])
    geometry = Geometry(sizes_of(flat), sizes_of(kernel), *parts)
    if geometry.groups != groups:
        raise InvalidArgumentError(f"{groups} groups do not fit a filter {list(sizes_of(kernel))}")
    result = geometry.forward(flat, kernel)
    return xla.reshape(result, (*outer, *sizes_of(result)[1:]))


# ------------------------------------------------------------------------------------------- quantised, with epilogue

_BYTES = (DataType.DT_INT8, DataType.DT_QINT8)
_AFTER = (("BiasAdd",), ("BiasAdd", "Relu"))
_FILTER_ORDERS = {"HWIO": (0, 1, 2, 3), "OIHW": (2, 3, 1, 0), "OIHW_VECT_I": (2, 3, 1, 4, 0)}


@xla_kernel("_FusedConv2D", types={"T": _BYTES}, const=("host_args",))
def _fused_conv(ctx: XlaOpKernelContext) -> Any:
    """Convolve bytes, scale, add a bias and a scaled side input, apply Relu if fused, and round to bytes."""
    after = tuple(ctx.attr("fused_ops"))
    if after not in _AFTER:
        raise UnimplementedError(f"{list(after)} after a convolution of bytes; it can be {list(map(list, _AFTER))}")
    if ctx.num_inputs != 6:
        raise InvalidArgumentError(f"{ctx.num_inputs} inputs, where a bias, a side input and two scales must follow")
    x, kernel, bias, side_input = (ctx.input(i) for i in range(4))
    scales = [ctx.constant_input(i) for i in (4, 5)]
    for scale in scales:
        if scale.ndim:
            raise ShapeError(f"host_args must be scalars; the shape of one is {list(scale.shape)}")
    result = _scaled_conv(ctx, _without_vectors(x, ctx), _as_hwio(kernel, ctx.attr("filter_format")), scales[0])
    feature = layout(_plain_format(ctx), 4)[1]
    if sizes_of(bias) != (sizes_of(result)[feature],):
        raise ShapeError(f"a bias of {list(sizes_of(bias))} for {sizes_of(result)[feature]} channels")
    result = result + xla.broadcast_in_dim(xla.convert(bias, ElementType.F32), sizes_of(result), (feature,))
    if np.prod(sizes_of(side_input), dtype=np.int64):
        result = result + _scaled_side_input(_without_vectors(side_input, ctx), result, scales[1])
    if after[-1] == "Relu":
        result = xla.maximum(result, zeros_like(result))
    rounded = xla.round_nearest_even(xla.clamp(scalar(result, -128), result, scalar(result, 127)))
    return _with_vectors(xla.convert(rounded, ElementType.S8), x, ctx)


def _scaled_side_input(side_input: XlaOp, like: XlaOp, scale: Array) -> XlaOp:
    if sizes_of(side_input) != sizes_of(like):
        raise ShapeError(
            f"the side input {list(sizes_of(side_input))} must have the result's shape {list(sizes_of(like))}"
        )
    wide = xla.convert(side_input, ElementType.F32)
    return wide * scalar(wide, scale)


def _scaled_conv(ctx: XlaOpKernelContext, x: XlaOp, kernel: XlaOp, scale: Array) -> XlaOp:
    _check_rank(x, 4, "input")
    x, kernel = (xla.convert(v, ElementType.F32) for v in (x, kernel))
    strides, padding, explicit, dilations = map(ctx.attr, ("strides", "padding", "explicit_paddings", "dilations"))
    geometry = Geometry(sizes_of(x), sizes_of(kernel), strides, padding, explicit, _plain_format(ctx), dilations)
    conv_geometry = geometry.forward(x, kernel)
    return conv_geometry * scalar(conv_geometry, scale)


def _plain_format(ctx: XlaOpKernelContext) -> str:
    data_format: str = ctx.attr("data_format")
    return data_format.removesuffix("_VECT_C")


def _as_hwio(kernel: XlaOp, filter_format: str) -> XlaOp:
    order = _FILTER_ORDERS[filter_format]
    _check_rank(kernel, len(order), "filter")
    transposed = xla.transpose(kernel, order)
    h, w, *inputs, results = sizes_of(transposed)
    return xla.reshape(transposed, (h, w, int(np.prod(inputs)), results))


def _without_vectors(x: XlaOp, ctx: XlaOpKernelContext) -> XlaOp:
    """Reshape [batch, channels / n, height, width, n] to a single channel dimension."""
    if not ctx.attr("data_format").endswith("_VECT_C"):
        return x
    _check_rank(x, 5, "input")
    n, outer, h, w, inner = sizes_of(x)
    return xla.reshape(xla.transpose(x, (0, 1, 4, 2, 3)), (n, outer * inner, h, w))


def _with_vectors(x: XlaOp, like: XlaOp, ctx: XlaOpKernelContext) -> XlaOp:
    if not ctx.attr("data_format").endswith("_VECT_C"):
        return x
    (n, channels, h, w), inner = sizes_of(x), sizes_of(like)[-1]
    if not inner or channels % inner:
        raise ShapeError(f"{channels} channels do not fall into vectors of {inner}")
    return xla.transpose(xla.reshape(x, (n, channels // inner, inner, h, w)), (0, 1, 3, 4, 2))
