"""Uniform quantisation: an integer q represents (q - zero point) * scale, per tensor or along one axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cyxla.core.framework.protos.messages import message
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.tf2xla.types import element_type
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel
from cyxla.types import ElementType
from cyxla.xla.hlo.attributes import ConvDims
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.proto.schema import raw
from cyxla.xla.lib.values import broadcast_shape, broadcast_to, full_like, rank_of, scalar, select, sizes_of

_WORD, _LONG, _DOUBLE = ElementType.S32, ElementType.S64, ElementType.F64


class Quantization:
    """Scales, zero points and limits of one operand.

    Parameters
    ----------
    ctx : XlaOpKernelContext
    prefix : str
        Prefix of the operand's inputs and attributes, such as ``"lhs_"``.
    """

    def __init__(self, ctx: XlaOpKernelContext, prefix: str = "") -> None:
        self.scales, self.zeros = ctx.input(f"{prefix}scales"), ctx.input(f"{prefix}zero_points")
        self.axis: int = ctx.attr(f"{prefix}quantization_axis")
        self.least: int = ctx.attr(f"{prefix}quantization_min_val")
        self.most: int = ctx.attr(f"{prefix}quantization_max_val")
        if self.axis < -1:
            raise InvalidArgumentError(f"{prefix}quantization_axis must be -1 or an axis; it is {self.axis}")
        if sizes_of(self.scales) != sizes_of(self.zeros) or rank_of(self.scales) != (self.axis >= 0):
            raise ShapeError(
                f"{prefix}scales {list(sizes_of(self.scales))} and {prefix}zero_points {list(sizes_of(self.zeros))} "
                f"must both be {'vectors' if self.axis >= 0 else 'scalars'} for the axis {self.axis}"
            )

    def broadcast(self, numbers: XlaOp, sizes: Sequence[int]) -> XlaOp:
        """Broadcast scales or zero points to an array's shape."""
        if self.axis < 0:
            return broadcast_to(numbers, sizes)
        if self.axis >= len(sizes) or sizes_of(numbers) != (sizes[self.axis],):
            raise ShapeError(f"{sizes_of(numbers)[0]} scales do not fit axis {self.axis} of {list(sizes)}")
        return xla.broadcast_in_dim(numbers, sizes, (self.axis,))

    def differences(self, x: XlaOp) -> XlaOp:
        """Subtract the zero points, in s32."""
        return xla.convert(x, _WORD) - self.broadcast(self.zeros, sizes_of(x))

    def clamp(self, x: XlaOp) -> XlaOp:
        """Clamp numbers to the limits."""
        return xla.minimum(xla.maximum(x, full_like(x, self.least)), full_like(x, self.most))


def _rescale(differences: XlaOp, factor: XlaOp, target: Quantization) -> XlaOp:
    """Multiply by an f64 factor in fixed point, with a 31-bit multiplier and a shift; add zero points and clamp."""
    multiplier, exponent = _fixed_point(factor)
    shift = full_like(exponent, 31) - exponent
    one = full_like(exponent, 1)
    product = xla.convert(differences, _LONG) * multiplier + xla.shift_left(one, shift - one)
    words = xla.clamp(
        scalar(product, -(1 << 31)), xla.shift_right_arithmetic(product, shift), scalar(one, (1 << 31) - 1)
    )
    return target.clamp(xla.convert(words, _WORD) + target.broadcast(target.zeros, sizes_of(differences)))


def _fixed_point(factor: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Return s64 multiplier and exponent of a factor multiplier * 2 ** (exponent - 31), with a 31-bit multiplier."""
    bits = xla.bitcast_convert(factor, _LONG)
    exponent = xla.shift_right(bits, full_like(bits, 52)) - full_like(bits, 1022)
    fraction = xla.bitcast_convert(bits - xla.shift_left(exponent, full_like(bits, 52)), _DOUBLE)
    multiplier = xla.convert(xla.floor(fraction * full_like(fraction, 2.0**31) + full_like(fraction, 0.5)), _LONG)
    over = xla.ge(multiplier, full_like(bits, 1 << 31))
    multiplier = select(over, full_like(bits, 1 << 30), multiplier)
    exponent = select(over, exponent + full_like(bits, 1), exponent)
    small, large = xla.lt(exponent, full_like(bits, -31)), xla.gt(exponent, full_like(bits, 30))
    multiplier = select(small, 0, select(large, (1 << 31) - 1, multiplier))
    return multiplier, select(small, 0, select(large, 30, exponent))


def _f64(x: XlaOp) -> XlaOp:
    return xla.convert(x, _DOUBLE)


# ----------------------------------------------------------------------------------- quantisation and dequantisation


@xla_kernel("UniformQuantize")
def _quantize(ctx: XlaOpKernelContext) -> Any:
    """Round to the nearest multiple of the scale, halves up."""
    x, target = ctx.input("input"), Quantization(ctx)
    inverse = target.broadcast(scalar(target.scales, 1) / target.scales, sizes_of(x))
    nearest = xla.floor(x * inverse + full_like(x, 0.5))
    result = target.clamp(xla.convert(nearest, _WORD) + target.broadcast(target.zeros, sizes_of(x)))
    return _as(result, ctx.attr("Tout"))


def _as(x: XlaOp, dtype: DataType) -> XlaOp:
    kind = element_type(dtype)
    return x if x.shape.dtype is kind else xla.convert(x, kind)


@xla_kernel("UniformDequantize")
def _dequantize(ctx: XlaOpKernelContext) -> Any:
    x, by = ctx.input("input"), Quantization(ctx)
    return xla.convert(by.differences(x), ElementType.F32) * by.broadcast(by.scales, sizes_of(x))


@xla_kernel("UniformRequantize")
def _requantize(ctx: XlaOpKernelContext) -> Any:
    x, by, target = ctx.input("input"), Quantization(ctx, "input_"), Quantization(ctx, "output_")
    return _as(_requantize_values(x, by, target), ctx.attr("Tout"))


def _requantize_values(x: XlaOp, by: Quantization, target: Quantization) -> XlaOp:
    """Convert to another quantisation, as s32."""
    sizes = sizes_of(x)
    factor = _f64(by.broadcast(by.scales, sizes)) / _f64(target.broadcast(target.scales, sizes))
    return _rescale(by.differences(x), factor, target)


# --------------------------------------------------------------------------------------------------------- arithmetic


@xla_kernel("UniformQuantizedClipByValue")
def _clip(ctx: XlaOpKernelContext) -> Any:
    """Clamp to bounds given in the operand's quantisation."""
    x, by = ctx.input("operand"), Quantization(ctx)
    low, high = (by.broadcast(ctx.input(name), sizes_of(x)) for name in ("min", "max"))
    return xla.minimum(xla.maximum(x, low), high)


@xla_kernel("UniformQuantizedAdd")
def _add(ctx: XlaOpKernelContext) -> Any:
    """Convert both operands to the result's quantisation and add; the sum contains its zero point twice."""
    target = Quantization(ctx, "output_")
    operands = [(ctx.input(name), Quantization(ctx, f"{name}_")) for name in ("lhs", "rhs")]
    sizes = broadcast_shape(*(sizes_of(x) for x, _ in operands))
    terms = []
    for x, by in operands:
        factor = broadcast_to(_f64(by.broadcast(by.scales, sizes_of(x))), sizes) / _f64(
            target.broadcast(target.scales, sizes)
        )
        terms.append(_rescale(broadcast_to(by.differences(x), sizes), factor, target))
    return target.clamp(terms[0] + terms[1] - target.broadcast(target.zeros, sizes))


def _requantize_products(ctx: XlaOpKernelContext, total: XlaOp, axis: int) -> XlaOp:
    """Requantise sums of products; only the right operand has scales per feature."""
    lhs, rhs, target = (Quantization(ctx, f"{name}_") for name in ("lhs", "rhs", "output"))
    sizes = sizes_of(total)
    by_right = _f64(rhs.scales)
    rhs_scales = xla.broadcast_in_dim(by_right, sizes, (axis,)) if rhs.axis >= 0 else broadcast_to(by_right, sizes)
    factor = broadcast_to(_f64(lhs.scales), sizes) * rhs_scales / _f64(target.broadcast(target.scales, sizes))
    return _rescale(total, factor, target)


def _differences(ctx: XlaOpKernelContext, features: int) -> list[XlaOp]:
    """Subtract the zero points of both operands; only the right one may have scales per feature."""
    operands = []
    for name, allowed in (("lhs", (-1,)), ("rhs", (-1, features))):
        by = Quantization(ctx, f"{name}_")
        if by.axis not in allowed:
            raise InvalidArgumentError(f"{name}_quantization_axis must be one of {allowed}; it is {by.axis}")
        operands.append(by.differences(ctx.input(name)))
    return operands


@xla_kernel("UniformQuantizedDot")
def _dot(ctx: XlaOpKernelContext) -> Any:
    """Emit a dot of s32 numbers."""
    shapes = [ctx.input_shape(name) for name in ("lhs", "rhs")]
    if any(len(s) != 2 for s in shapes) or shapes[0][1] != shapes[1][0]:
        raise ShapeError(f"matrices of {list(shapes[0])} and {list(shapes[1])} have no product")
    lhs, rhs = _differences(ctx, 1)
    return _requantize_products(ctx, xla.dot_general(lhs, rhs, lhs_contracting_dims=(1,), rhs_contracting_dims=(0,)), 1)


@xla_kernel("UniformQuantizedConvolution")
def _convolution(ctx: XlaOpKernelContext) -> Any:
    """Emit a convolution of s32 numbers, with zero padding."""
    rank = len(ctx.input_shape("lhs"))
    if rank < 3 or len(ctx.input_shape("rhs")) != rank:
        raise ShapeError(f"a convolution of {list(ctx.input_shape('lhs'))} with {list(ctx.input_shape('rhs'))}")
    dims = _dimensions(ctx, rank)
    strides, base_dilations, dilations = (
        list(ctx.attr(name)) or [1] * (rank - 2) for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    if not len(strides) == len(base_dilations) == len(dilations) == rank - 2:
        raise InvalidArgumentError(f"strides and dilations must hold a number for each of {rank - 2} dimensions")
    if min(*strides, *base_dilations, *dilations) < 1:
        raise InvalidArgumentError("strides and dilations must be positive")
    lhs, rhs = _differences(ctx, dims.kernel_output_feature)
    pads = _pads(ctx, dims, strides, base_dilations, dilations)
    groups = (ctx.attr("feature_group_count"), ctx.attr("batch_group_count"))
    total = xla.conv_general_dilated(lhs, rhs, strides, pads, base_dilations, dilations, dims, *groups)
    return _requantize_products(ctx, total, dims.output_feature)


def _dimensions(ctx: XlaOpKernelContext, rank: int) -> ConvDims:
    text = raw(ctx.attr("dimension_numbers"))
    if not text:
        spatial = tuple(range(2, rank))
        return ConvDims(0, 1, spatial, 1, 0, spatial, 0, 1, spatial)
    result = message("UniformQuantizedConvolutionDimensionNumbersAttr")()
    try:
        result.ParseFromString(text)
    except Exception:  # the error class is not public in all versions of protobuf
        raise InvalidArgumentError("dimension_numbers is not a valid message") from None
    values = [getattr(result, field.name) for field in result.DESCRIPTOR.fields]
    return ConvDims._make(v if isinstance(v, int) else tuple(v) for v in values)


def _pads(
    ctx: XlaOpKernelContext,
    dims: ConvDims,
    strides: Sequence[int],
    base_dilations: Sequence[int],
    dilations: Sequence[int],
) -> list[tuple[int, int]]:
    """Return low and high padding of each spatial dimension."""
    padding, explicit = ctx.attr("padding"), list(ctx.attr("explicit_padding"))
    if padding == "EXPLICIT":
        if len(explicit) != 2 * len(strides):
            raise InvalidArgumentError(f"explicit_padding must hold {2 * len(strides)} numbers; it is {explicit}")
        return list(zip(explicit[::2], explicit[1::2], strict=True))
    if padding not in ("SAME", "VALID"):
        raise InvalidArgumentError(f"padding must be SAME, VALID or EXPLICIT; it is {padding!r}")
    if padding == "VALID":
        return [(0, 0)] * len(strides)
    sizes = [ctx.input_shape("lhs")[d] for d in dims.input_spatial]
    windows = [ctx.input_shape("rhs")[d] for d in dims.kernel_spatial]
    result = []
    for size, window, stride, base_dilation, step in zip(
        sizes, windows, strides, base_dilations, dilations, strict=True
    ):
        size = (size - 1) * base_dilation + 1 if size else 0
        rest = max((-(-size // stride) - 1) * stride + (window - 1) * step + 1 - size, 0)
        result.append((rest // 2, rest - rest // 2))
    return result
