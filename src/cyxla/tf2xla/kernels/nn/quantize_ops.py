"""Fake quantisation, and integers that represent floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.tf2xla.types import element_type
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, lowering, xla_kernel
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import (
    broadcast_to,
    full_like,
    is_narrow,
    max_of,
    min_of,
    rank_of,
    scalar,
    select,
    sizes_of,
    sum_of,
    widened,
    zeros_like,
)

_BYTES = (DataType.DT_QINT8, DataType.DT_QUINT8)


# ------------------------------------------------------------------------------------------------- fake quantisation


def _check_bits(num_bits: int) -> None:
    if not 2 <= num_bits <= 16:
        raise InvalidArgumentError(f"num_bits must lie in [2, 16]; it is {num_bits}")


def _nudge_range(low: XlaOp, high: XlaOp, num_bits: int, narrow_range: bool) -> tuple[XlaOp, XlaOp, XlaOp]:
    """Nudge the range so that it represents 0 exactly, and return it with the step."""
    least, most = full_like(low, float(narrow_range)), full_like(low, float((1 << num_bits) - 1))
    scale = (high - low) / (most - least)
    zero = least - low / scale
    nearest = xla.floor(zero + full_like(zero, 0.5))
    nearest = select(xla.lt(zero, least), least, select(xla.gt(zero, most), most, nearest))
    return (least - nearest) * scale, (most - nearest) * scale, scale


def _fake_quantize(x: XlaOp, low: XlaOp, high: XlaOp, num_bits: int, narrow_range: bool) -> XlaOp:
    least, most, scale = _nudge_range(low, high, num_bits, narrow_range)
    inverse = full_like(scale, 1) / scale
    zero = xla.floor(full_like(least, 0.5) - least * inverse)
    parts = (least, most, scale, inverse, zero, xla.eq(low, high))
    least, most, scale, inverse, zero, is_empty = (broadcast_to(v, sizes_of(x)) for v in parts)
    shifted = xla.maximum(xla.minimum(x, most), least) - least
    result = xla.floor(shifted * inverse - zero + full_like(x, 0.5)) * scale
    return select(is_empty, zeros_like(x), result)


def _gradients(grads: XlaOp, x: XlaOp, low: XlaOp, high: XlaOp, bits: int, narrow: bool) -> list[XlaOp]:
    """Mask the gradient for the input, the lower and the upper bound."""
    if sizes_of(grads) != sizes_of(x):
        raise ShapeError(f"gradients {list(sizes_of(grads))} and inputs {list(sizes_of(x))} must have one shape")
    least, most, _ = _nudge_range(low, high, bits, narrow)
    is_empty = xla.and_(xla.eq(low, zeros_like(low)), xla.eq(high, zeros_like(high)))
    least, most, is_empty = (broadcast_to(v, sizes_of(x)) for v in (least, most, is_empty))
    inside = xla.or_(xla.and_(xla.ge(x, least), xla.le(x, most)), is_empty)
    full = xla.not_(is_empty)
    masks = (inside, xla.and_(xla.lt(x, least), full), xla.and_(xla.gt(x, most), full))
    return [select(mask, grads, zeros_like(grads)) for mask in masks]


def _range_of_attrs(x: XlaOp, low: float, high: float, num_bits: int) -> tuple[XlaOp, XlaOp]:
    _check_bits(num_bits)
    if not low < high:
        raise InvalidArgumentError(f"min must be below max; they are {low} and {high}")
    return scalar(x, low), scalar(x, high)


_ARGS = ("min", "max", "num_bits", "narrow_range")


@lowering("FakeQuantWithMinMaxArgs", attrs=_ARGS)
def _args(x: XlaOp, *, min: float, max: float, num_bits: int, narrow_range: bool) -> XlaOp:
    return _fake_quantize(x, *_range_of_attrs(x, min, max, num_bits), num_bits, narrow_range)


@lowering("FakeQuantWithMinMaxArgsGradient", attrs=_ARGS)
def _args_gradient(grads: XlaOp, x: XlaOp, *, min: float, max: float, num_bits: int, narrow_range: bool) -> XlaOp:
    return _gradients(grads, x, *_range_of_attrs(x, min, max, num_bits), num_bits, narrow_range)[0]


def _check_range(x: XlaOp, low: XlaOp, high: XlaOp, num_bits: int, channels: bool) -> None:
    _check_bits(num_bits)
    expected = sizes_of(x)[-1:] if channels else ()
    for name, end in (("min", low), ("max", high)):
        if sizes_of(end) != expected or (channels and not rank_of(x)):
            raise ShapeError(f"{name} has the shape {list(sizes_of(end))}; {list(expected)} is needed")


def _register(suffix: str, channels: bool) -> None:
    @lowering("FakeQuantWithMinMaxVars" + suffix, attrs=("num_bits", "narrow_range"))
    def forward(x: XlaOp, low: XlaOp, high: XlaOp, *, num_bits: int, narrow_range: bool) -> XlaOp:
        _check_range(x, low, high, num_bits, channels)
        return _fake_quantize(x, low, high, num_bits, narrow_range)

    @lowering(f"FakeQuantWithMinMaxVars{suffix}Gradient", attrs=("num_bits", "narrow_range"))
    def backward(grads: XlaOp, x: XlaOp, low: XlaOp, high: XlaOp, *, num_bits: int, narrow_range: bool) -> list[XlaOp]:
        _check_range(x, low, high, num_bits, channels)
        inside, below, above = _gradients(grads, x, low, high, num_bits, narrow_range)
        rest = range(rank_of(x) - channels)
        return [inside, sum_of(below, rest), sum_of(above, rest)]


_register("", False)
_register("PerChannel", True)


# --------------------------------------------------------------------------------------------- quantise and dequantise


def _quantize_dequantize(
    x: XlaOp,
    low: XlaOp,
    high: XlaOp,
    bits: int | XlaOp,
    signed: bool,
    range_given: bool,
    half_up: bool,
    narrow: bool,
    axis: int,
) -> XlaOp:
    """Round to multiples of a step derived from the given range or that of the input; 0 is exact."""
    wide = widened(x)
    least, most = _integer_limits(wide, bits, signed, narrow)
    low, high = (_broadcast_bound(wide, widened(e), axis) for e in (low, high))
    if not range_given:
        rest = [d for d in range(rank_of(x)) if d != axis]
        low, high = (broadcast_to(f(wide, rest, True) if rest else wide, sizes_of(x)) for f in (min_of, max_of))
    inverse, bottom, top = _scale(low, high, least, most)
    numbers = xla.maximum(xla.minimum(wide, top), bottom) if range_given else wide
    scaled = numbers * (full_like(inverse, 1) / inverse)
    rounded = xla.floor(scaled + full_like(scaled, 0.5)) if half_up else xla.round_nearest_even(scaled)
    result = rounded * inverse
    return xla.convert(result, x.shape.dtype) if is_narrow(x) else result


def _broadcast_bound(x: XlaOp, end: XlaOp, axis: int) -> XlaOp:
    """Broadcast a bound of the range to the input's shape."""
    if axis < 0:
        return broadcast_to(xla.reshape(end, ()), sizes_of(x))
    if axis >= rank_of(x) or sizes_of(end) != (sizes_of(x)[axis],):
        raise ShapeError(f"ends of {list(sizes_of(end))} do not belong to dimension {axis} of {list(sizes_of(x))}")
    return xla.broadcast_in_dim(end, sizes_of(x), (axis,))


def _integer_limits(like: XlaOp, bits: int | XlaOp, signed: bool, narrow: bool) -> tuple[XlaOp, XlaOp]:
    """Return the limits of integers of `bits` bits, as floats; the number of bits may be dynamic."""
    if isinstance(bits, XlaOp):
        wide = xla.convert(bits, like.shape.dtype)
        half = xla.power(scalar(like, 2), wide - scalar(like, 1) if signed else wide)
        least = scalar(like, float(narrow)) - half if signed else scalar(like, 0)
        return broadcast_to(least, sizes_of(like)), broadcast_to(half - scalar(like, 1), sizes_of(like))
    if not 0 < bits <= (62 if signed else 63):
        raise InvalidArgumentError(f"num_bits must lie in [1, {62 if signed else 63}]; it is {bits}")
    limits = (-(1 << (bits - 1)) + narrow, (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return full_like(like, float(limits[0])), full_like(like, float(limits[1]))


def _scale(low: XlaOp, high: XlaOp, by_low: XlaOp, by_high: XlaOp) -> tuple[XlaOp, XlaOp, XlaOp]:
    zero, huge = zeros_like(low), full_like(low, float(np.finfo(np.float32).max))
    from_low = select(xla.gt(by_low * low, zero), by_low / low, huge)
    from_high = select(xla.gt(by_high * high, zero), by_high / high, huge)
    use_low = xla.lt(from_low, from_high)
    inverse = select(use_low, select(xla.eq(by_low, zero), zero, low / by_low), high / by_high)
    return inverse, select(use_low, low, by_low * inverse), select(use_low, by_high * inverse, high)


def _v2(
    x: XlaOp,
    low: XlaOp,
    high: XlaOp,
    *,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    round_mode: str,
    narrow_range: bool,
    axis: int,
) -> XlaOp:
    half_up = round_mode == "HALF_UP"
    return _quantize_dequantize(x, low, high, num_bits, signed_input, range_given, half_up, narrow_range, axis)


lowering(
    ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"),
    _v2,
    attrs=("signed_input", "num_bits", "range_given", "round_mode", "narrow_range", "axis"),
)


@xla_kernel("QuantizeAndDequantizeV3")
def _v3(ctx: XlaOpKernelContext) -> Any:
    """Quantise with a number of bits that may be dynamic."""
    x, low, high = (ctx.input(i) for i in range(3))
    constant_bits = ctx.xla.constant_value(ctx.input_expression("num_bits"))
    if ctx.input_shape("num_bits") not in ((), (1,)):
        raise ShapeError(f"num_bits must be one number; its shape is {list(ctx.input_shape('num_bits'))}")
    bits = int(constant_bits.reshape(())) if constant_bits is not None else xla.reshape(ctx.input("num_bits"), ())
    signed, range_given, narrow = (ctx.attr(name) for name in ("signed_input", "range_given", "narrow_range"))
    return _quantize_dequantize(x, low, high, bits, signed, range_given, False, narrow, ctx.attr("axis"))


# ------------------------------------------------------------------------------------------------- dequantisation


@lowering("Dequantize", attrs=("T", "mode", "narrow_range", "axis", "dtype"), types={"T": _BYTES})
def _dequantize(
    x: XlaOp, low: XlaOp, high: XlaOp, *, T: DataType, mode: str, narrow_range: bool, axis: int, dtype: DataType
) -> XlaOp:
    info = np.iinfo(T.numpy)
    least, most = float(info.min), float(info.max)
    number = xla.convert(x, ElementType.F32)
    bottom, top = _broadcast_bound(number, low, axis), _broadcast_bound(number, high, axis)
    steps = full_like(number, most - least)
    if mode == "SCALED":
        by_high = top / full_like(top, most)
        first = least + 1 if narrow_range and least < 0 else least
        factor = xla.maximum(bottom / full_like(bottom, first), by_high) if least < 0 else by_high
        result = number * factor
    elif mode == "MIN_FIRST":
        scale = (top - bottom) / steps
        offset = xla.round_nearest_even(bottom / scale) * scale
        result = (number - full_like(number, least)) * scale + offset
    else:
        half = (most - least + 1) / 2 if least < 0 else 0.0
        result = (number + full_like(number, half)) * ((top - bottom) / steps) + bottom
    return xla.convert(result, element_type(dtype))
