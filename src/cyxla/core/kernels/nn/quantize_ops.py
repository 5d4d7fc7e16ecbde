"""Fake quantisation, and integers that represent floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.geometry.windows import Windows, check_rank, check_steps
from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.types import FLOATING, DataType, as_data_type
from cyxla.core.kernels.lib.convolution import convolve
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]

_F32 = np.float32

# -------------------------------------------------------------------------------------------------- fake quantisation


def _check_bits(num_bits: int) -> None:
    if not 2 <= num_bits <= 16:
        raise InvalidArgumentError(f"num_bits must lie in [2, 16]; it is {num_bits}")


def _nudge_range(low: Array, high: Array, num_bits: int, narrow_range: bool) -> tuple[Array, Array, Array]:
    """Nudge the range so that it represents 0 exactly; return it with the step, in f32 as TensorFlow does."""
    least, most = _F32(1 if narrow_range else 0), _F32((1 << num_bits) - 1)
    with np.errstate(all="ignore"):
        scale = (high - low) / (most - least)
        zero = least - low / scale
        nearest = np.floor(np.clip(zero, least, most) + _F32(0.5))
    nearest = np.where(zero < least, least, np.where(zero > most, most, nearest)).astype(np.float32)
    return (least - nearest) * scale, (most - nearest) * scale, scale


def _fake_quantize(inputs: Array, low: Array, high: Array, num_bits: int, narrow_range: bool) -> Array:
    least, most, scale = _nudge_range(low, high, num_bits, narrow_range)
    with np.errstate(all="ignore"):
        inverse = _F32(1) / scale
        zero = np.floor(-least * inverse + _F32(0.5))
        shifted = np.clip(inputs, least, most) - least
        result = np.floor(shifted * inverse - zero + _F32(0.5)) * scale
    return np.asarray(np.where((low == 0) & (high == 0), _F32(0), result), np.float32)


def _fake_gradient(grads: Array, inputs: Array, low: Array, high: Array, bits: int, narrow: bool) -> tuple[Array, ...]:
    """Return the gradient of the inputs, and per element those of both ends of the range."""
    if grads.shape != inputs.shape:
        raise ShapeError(f"gradients {list(grads.shape)} and inputs {list(inputs.shape)} must have one shape")
    least, most, _ = _nudge_range(low, high, bits, narrow)
    is_empty = (low == 0) & (high == 0)
    inside = (inputs >= least) & (inputs <= most) | is_empty
    below, above = (inputs < least) & ~is_empty, (inputs > most) & ~is_empty
    return tuple(np.where(mask, grads, _F32(0)) for mask in (inside, below, above))


def _check_attr_range(low: float, high: float, num_bits: int) -> tuple[Array, Array]:
    _check_bits(num_bits)
    if not low < high:
        raise InvalidArgumentError(f"min must be below max; they are {low} and {high}")
    return np.asarray(low, np.float32), np.asarray(high, np.float32)


@array_kernel("FakeQuantWithMinMaxArgs", attrs=("min", "max", "num_bits", "narrow_range"))
def _fake_quant_args(inputs: Array, *, min: float, max: float, num_bits: int, narrow_range: bool) -> Array:
    return _fake_quantize(inputs, *_check_attr_range(min, max, num_bits), num_bits, narrow_range)


@array_kernel("FakeQuantWithMinMaxArgsGradient", attrs=("min", "max", "num_bits", "narrow_range"))
def _fake_quant_args_gradient(
    gradients: Array, inputs: Array, *, min: float, max: float, num_bits: int, narrow_range: bool
) -> Array:
    limits = _check_attr_range(min, max, num_bits)
    return _fake_gradient(gradients, inputs, *limits, num_bits, narrow_range)[0]


def _check_scalars(low: Array, high: Array, num_bits: int) -> None:
    _check_bits(num_bits)
    for name, operand in (("min", low), ("max", high)):
        if operand.ndim:
            raise ShapeError(f"{name} must be a scalar; its shape is {list(operand.shape)}")


def _check_channels(inputs: Array, low: Array, high: Array, num_bits: int) -> None:
    _check_bits(num_bits)
    if not inputs.ndim:
        raise ShapeError("inputs must have channels as their last dimension; this is a scalar")
    for name, operand in (("min", low), ("max", high)):
        if operand.shape != inputs.shape[-1:]:
            raise ShapeError(
                f"{name} {list(operand.shape)} must hold one number for each of {inputs.shape[-1]} channels"
            )


@array_kernel("FakeQuantWithMinMaxVars", attrs=("num_bits", "narrow_range"))
def _fake_quant_vars(inputs: Array, low: Array, high: Array, *, num_bits: int, narrow_range: bool) -> Array:
    _check_scalars(low, high, num_bits)
    return _fake_quantize(inputs, low, high, num_bits, narrow_range)


@array_kernel("FakeQuantWithMinMaxVarsGradient", attrs=("num_bits", "narrow_range"))
def _fake_quant_vars_gradient(
    gradients: Array, inputs: Array, low: Array, high: Array, *, num_bits: int, narrow_range: bool
) -> tuple[Array, Array, Array]:
    _check_scalars(low, high, num_bits)
    inside, below, above = _fake_gradient(gradients, inputs, low, high, num_bits, narrow_range)
    return inside, np.asarray(below.sum(dtype=np.float32)), np.asarray(above.sum(dtype=np.float32))


@array_kernel("FakeQuantWithMinMaxVarsPerChannel", attrs=("num_bits", "narrow_range"))
def _fake_quant_channels(inputs: Array, low: Array, high: Array, *, num_bits: int, narrow_range: bool) -> Array:
    _check_channels(inputs, low, high, num_bits)
    return _fake_quantize(inputs, low, high, num_bits, narrow_range)


@array_kernel("FakeQuantWithMinMaxVarsPerChannelGradient", attrs=("num_bits", "narrow_range"))
def _fake_quant_channels_gradient(
    gradients: Array, inputs: Array, low: Array, high: Array, *, num_bits: int, narrow_range: bool
) -> tuple[Array, Array, Array]:
    _check_channels(inputs, low, high, num_bits)
    inside, below, above = _fake_gradient(gradients, inputs, low, high, num_bits, narrow_range)
    rest = tuple(range(inputs.ndim - 1))
    return inside, below.sum(axis=rest, dtype=np.float32), above.sum(axis=rest, dtype=np.float32)


# -------------------------------------------------------------------------------------- there and back, all in floats


def _quantize_dequantize(
    x: Array,
    low: Array,
    high: Array,
    bits: int,
    signed: bool,
    range_given: bool,
    half_up: bool,
    narrow: bool,
    axis: int,
) -> Array:
    """Round each number to the nearest value that an integer of `bits` bits represents.

    The scale is set by the end of the range that needs the larger step; 0 is always exact.
    """
    least, most = _integer_limits(bits, signed, narrow)
    wide = np.float64 if x.dtype == np.float64 else np.float32
    limits = [_range_end(x, end, axis, wide) for end in (low, high)]
    if not range_given:
        rest = None if axis < 0 else tuple(d for d in range(x.ndim) if d != axis)
        limits = [_range_limit(x, name, rest, wide) for name in ("min", "max")]
    elif (limits[0] > limits[1]).any():
        raise InvalidArgumentError(f"input_min must not exceed input_max: {limits[0].min()} and {limits[1].max()}")
    inverse, bottom, top = _scale(limits[0], limits[1], wide(least), wide(most))
    numbers = x.astype(wide)
    if range_given:
        numbers = np.clip(numbers, bottom, top)
    with np.errstate(all="ignore"):
        scaled = np.multiply(numbers, 1 / inverse)
        rounded = np.floor(scaled + wide(0.5)) if half_up else np.rint(scaled)
        return np.multiply(rounded, inverse).astype(x.dtype)


def _integer_limits(bits: int, signed: bool, narrow: bool) -> tuple[int, int]:
    limit = 62 if signed else 63
    if not 0 < bits < limit + 1:
        raise InvalidArgumentError(f"num_bits must lie in [1, {limit}]; it is {bits}")
    if not signed:
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)) + narrow, (1 << (bits - 1)) - 1


def _range_end(x: Array, end: Array, axis: int, wide: Any) -> Array:
    if axis < 0:
        if end.size != 1:
            raise ShapeError(f"an end of the range must be one number; its shape is {list(end.shape)}")
        return np.asarray(end.reshape(()), wide)
    if axis >= x.ndim:
        raise InvalidArgumentError(f"axis {axis} is not one of an input of rank {x.ndim}")
    if end.shape != (x.shape[axis],):
        raise ShapeError(f"ends of the range {list(end.shape)}: {x.shape[axis]} are needed, one for each slice")
    return np.asarray(end.reshape([end.size if d == axis else 1 for d in range(x.ndim)]), wide)


def _range_limit(x: Array, name: str, axes: tuple[int, ...] | None, wide: Any) -> Array:
    if not x.size:
        return np.zeros((), wide)
    return np.asarray(getattr(x, name)(axis=axes, keepdims=axes is not None), wide)


def _scale(low: Array, high: Array, least: Any, most: Any) -> tuple[Array, Array, Array]:
    """Return the step, and the range it represents; the sign of the limits decides for an empty range."""
    huge = np.finfo(low.dtype).max
    with np.errstate(all="ignore"):
        from_low = np.where(least * low > 0, least / low, huge)
        from_high = np.where(most * high > 0, most / high, huge)
        by_low = from_low < from_high
        inverse = np.where(by_low, low / least if least else huge, high / most)
    return inverse, np.where(by_low, low, least * inverse), np.where(by_low, most * inverse, high)


_ATTRS = ("signed_input", "num_bits", "range_given", "round_mode", "narrow_range", "axis")


@array_kernel(("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4"), attrs=_ATTRS, types={"T": FLOATING})
def _quantize_and_dequantize(
    x: Array,
    low: Array,
    high: Array,
    *,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    round_mode: str,
    narrow_range: bool,
    axis: int,
) -> Array:
    half_up = round_mode == "HALF_UP"
    return _quantize_dequantize(x, low, high, num_bits, signed_input, range_given, half_up, narrow_range, axis)


@array_kernel(
    "QuantizeAndDequantizeV3", attrs=("signed_input", "range_given", "narrow_range", "axis"), types={"T": FLOATING}
)
def _quantize_and_dequantize_v3(
    x: Array,
    low: Array,
    high: Array,
    num_bits: Array,
    *,
    signed_input: bool,
    range_given: bool,
    narrow_range: bool,
    axis: int,
) -> Array:
    if num_bits.size != 1:
        raise ShapeError(f"num_bits must be one number; its shape is {list(num_bits.shape)}")
    bits = int(num_bits.reshape(()))
    return _quantize_dequantize(x, low, high, bits, signed_input, range_given, False, narrow_range, axis)


# ----------------------------------------------------------------------------------- integers that stand for floats


def _limits(t: DataType) -> tuple[int, int]:
    info = np.iinfo(t.numpy)
    return int(info.min), int(info.max)


def _channel_range(x: Array, end: Array, axis: int) -> Array:
    if axis < 0:
        if end.size != 1:
            raise ShapeError(f"an end of the range must be one number; its shape is {list(end.shape)}")
        return np.asarray(end.reshape(()), np.float32)
    return _range_end(x, end, axis, np.float32)


@array_kernel("Dequantize", attrs=("T", "mode", "narrow_range", "axis", "dtype"))
def _dequantize(
    x: Array, low: Array, high: Array, *, T: DataType, mode: str, narrow_range: bool, axis: int, dtype: DataType
) -> Array:
    least, most = _limits(T)
    bottom, top = _channel_range(x, low, axis), _channel_range(x, high, axis)
    steps = _F32(float(most) - float(least))
    if mode == "SCALED":
        first = least + 1 if narrow_range and least < 0 else least
        factor = np.maximum(bottom / _F32(first), top / _F32(most)) if least < 0 else top / _F32(most)
        result = x.astype(np.float32) * factor
    elif mode == "MIN_FIRST":
        scale = (top.astype(np.float64) - bottom) / float(steps)
        offset = np.rint(bottom / scale) * scale
        result = ((x.astype(np.float64) - least) * scale + offset).astype(np.float32)
    else:
        half = (float(most) - float(least) + 1) / 2 if least < 0 else 0.0
        result = (x.astype(np.float32) + _F32(half)) * ((top - bottom) / steps) + bottom
    return np.asarray(result).astype(dtype.numpy)


# ------------------------------------------------------------------------------------------------ floats to integers


@array_kernel("QuantizeAndDequantize", attrs=("signed_input", "num_bits", "range_given", "input_min", "input_max"))
def _quantize_and_dequantize_v1(
    x: Array, *, signed_input: bool, num_bits: int, range_given: bool, input_min: float, input_max: float
) -> Array:
    low, high = np.asarray(input_min), np.asarray(input_max)
    return _quantize_dequantize(x, low, high, num_bits, signed_input, range_given, False, False, -1)


def _extend_range(low: Array, high: Array, ensured: float) -> tuple[Array, Array]:
    """Extend the range to include 0 and to a minimum width relative to its larger end, or to 1."""
    bottom = np.minimum(_F32(0), low)
    epsilon = np.maximum(_F32(1), np.maximum(np.abs(low), np.abs(high))) * _F32(ensured)
    return bottom, np.maximum(_F32(0), np.maximum(high, bottom + epsilon))


def _round_away_from_zero(x: Array) -> Array:
    return np.trunc(x + np.copysign(np.asarray(0.5, x.dtype), x))


def _quantize_min_combined(x: Array, low: Array, high: Array, t: DataType) -> Array:
    """Spread the range evenly over all integers."""
    least, most = _limits(t)
    factor = ((float(most) - float(least)) / (high.astype(np.float64) - low)).astype(np.float32)
    above = np.minimum(np.maximum(x, low), high) - low
    if least < 0:
        return _round_away_from_zero(above * factor - _F32((float(most) - float(least) + 1) / 2))
    return np.floor(above * factor + _F32(0.5))


def _quantize_min_first(x: Array, low: Array, high: Array, t: DataType) -> Array:
    """Map the least number and 0 to integers exactly."""
    least, _ = _limits(t)
    steps = 2.0 ** (8 * t.numpy.itemsize)
    scale = steps / ((high.astype(np.float64) - low) * (steps / (steps - 1)))
    return _round_away_from_zero(x.astype(np.float64) * scale) - (_round_away_from_zero(low * scale) - least)


def _quantize_scaled(
    x: Array, low: Array, high: Array, t: DataType, narrow: bool, even: bool
) -> tuple[Array, Array, Array]:
    """Scale without an offset, so that 0 maps to 0; return also the represented range."""
    least, most = _limits(t)
    least += int(narrow and least < 0)
    huge = np.finfo(np.float32).max
    with np.errstate(all="ignore"):
        by_low = np.where(least * low > 0, _F32(least) / low, huge)
        by_high = np.where(most * high > 0, _F32(most) / high, huge)
        factor = np.minimum(by_low, by_high).astype(np.float32)
        bottom, top = _F32(least) / factor, _F32(most) / factor
        numbers = np.minimum(np.maximum(x, bottom), top) * factor
    return np.rint(numbers) if even else _round_away_from_zero(numbers), bottom, top


def _clamp(x: Array, t: DataType) -> Array:
    """Clamp to the limits of a type; NaN becomes 0."""
    least, most = _limits(t)
    wide = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=most, neginf=least)
    return np.clip(wide, least, most).astype(np.int64).astype(t.numpy)


@array_kernel("QuantizeV2", attrs=("T", "mode", "round_mode", "narrow_range", "axis", "ensure_minimum_range"))
def _quantize(
    x: Array,
    low: Array,
    high: Array,
    *,
    T: DataType,
    mode: str,
    round_mode: str,
    narrow_range: bool,
    axis: int,
    ensure_minimum_range: float,
) -> tuple[Array, Array, Array]:
    even = round_mode == "HALF_TO_EVEN"
    if even and mode != "SCALED":
        raise InvalidArgumentError(f"round_mode HALF_TO_EVEN is for mode SCALED, not {mode}")
    bottom, top = _channel_range(x, low, axis), _channel_range(x, high, axis)
    if (bottom > top).any():
        raise InvalidArgumentError(f"min_range must not exceed max_range: {low.tolist()} and {high.tolist()}")
    bottom, top = _extend_range(bottom, top, ensure_minimum_range)
    if mode == "SCALED":
        numbers, bottom, top = _quantize_scaled(x, bottom, top, T, narrow_range, even)
    else:
        numbers = (_quantize_min_first if mode == "MIN_FIRST" else _quantize_min_combined)(x, bottom, top, T)
    limits = [np.asarray(end, np.float32).reshape(-1 if axis >= 0 else ()) for end in (bottom, top)]
    return _clamp(numbers, T), limits[0], limits[1]


# ----------------------------------------------------------------------------- arithmetic of integers that are floats

_QUINT8, _QINT32 = as_data_type("quint8"), as_data_type("qint32")


def _number(x: Array, name: str) -> float:
    if x.size != 1:
        raise ShapeError(f"{name} must be one number; its shape is {list(x.shape)}")
    return float(x.reshape(()))


def _zero_point(least: float, most: float, t: DataType) -> int:
    """Return the integer that represents 0."""
    if least == most:
        return 0
    scale = _step_count(t) / ((most - least) * _step_count(t) / (_step_count(t) - 1))
    nearest = np.asarray(_round_away_from_zero(np.asarray(least * scale)))
    return _limits(t)[0] - int(nearest)


def _step_count(t: DataType) -> float:
    return 2.0 ** (8 * t.numpy.itemsize)


def _product_range(limits: list[float], types: tuple[DataType, DataType]) -> tuple[Array, Array]:
    """Return the values represented by the limits of the product's integer type."""
    steps = 1.0
    for (least, most), t in zip((limits[:2], limits[2:]), types, strict=True):
        bottom, top = _limits(t)
        steps *= float(_F32(_F32(most) - _F32(least)) / _F32(top - bottom))
    first, last = _limits(_QINT32)
    return np.asarray(steps * first, np.float32), np.asarray(steps * last, np.float32)


def _operands(
    a: Array, b: Array, ranges: tuple[Array, ...], types: tuple[DataType, DataType]
) -> tuple[Array, Array, tuple[Array, Array]]:
    """Subtract the zero points of both operands, and return the range of their products."""
    names = ("the least of a", "the greatest of a", "the least of b", "the greatest of b")
    limits = [_number(x, name) for x, name in zip(ranges, names, strict=True)]
    if limits[0] >= limits[1] or limits[2] >= limits[3]:
        raise InvalidArgumentError(
            f"a range must not be empty: [{limits[0]}, {limits[1]}] and [{limits[2]}, {limits[3]}]"
        )
    a_offset = a.astype(np.int64) - _zero_point(limits[0], limits[1], types[0])
    right = b.astype(np.int64) - _zero_point(limits[2], limits[3], types[1])
    return a_offset, right, _product_range(limits, types)


@array_kernel(
    "QuantizedMatMul",
    attrs=("T1", "T2", "transpose_a", "transpose_b"),
    types={"T1": (_QUINT8,), "T2": (_QUINT8,), "Toutput": (_QINT32,)},
)
def _quantized_mat_mul(
    a: Array, b: Array, *ranges: Array, T1: DataType, T2: DataType, transpose_a: bool, transpose_b: bool
) -> tuple[Array, Array, Array]:
    if a.ndim != 2 or b.ndim != 2:
        raise ShapeError(f"a and b must be matrices; their shapes are {list(a.shape)} and {list(b.shape)}")
    left, right, (least, most) = _operands(a, b, ranges, (T1, T2))
    left, right = left.T if transpose_a else left, right.T if transpose_b else right
    if left.shape[1] != right.shape[0]:
        raise ShapeError(f"a has {left.shape[1]} columns, but b has {right.shape[0]} rows")
    return (left @ right).astype(np.int32), least, most


@array_kernel(
    "QuantizedConv2D",
    attrs=("Tinput", "Tfilter", "strides", "padding", "dilations"),
    types={"Tinput": (_QUINT8,), "Tfilter": (_QUINT8,), "out_type": (_QINT32,)},
)
def _quantized_conv(
    x: Array,
    kernel: Array,
    *ranges: Array,
    Tinput: DataType,
    Tfilter: DataType,
    strides: tuple[int, ...],
    padding: str,
    dilations: tuple[int, ...],
) -> tuple[Array, Array, Array]:
    check_rank(x, 4, "input")
    check_rank(kernel, 4, "filter")
    if x.shape[3] != kernel.shape[2]:
        raise ShapeError(f"the input has {x.shape[3]} channels, the filter is for {kernel.shape[2]}")
    left, right, (least, most) = _operands(x, kernel, ranges, (Tinput, Tfilter))
    steps, rates = (check_steps(n, name, 4, "NHWC") for n, name in ((strides, "strides"), (dilations, "dilations")))
    windows = Windows.of(x.shape[1:3], kernel.shape[:2], steps, rates, padding)
    return convolve(left, right, windows).astype(np.int32), least, most


_FIXED_POINT_ONE = 1 << 16  # 1.0 in the fixed-point arithmetic of Requantize


@array_kernel("Requantize", types={"Tinput": (_QINT32,), "out_type": (_QUINT8,)})
def _requantize(x: Array, low: Array, high: Array, requested_low: Array, requested_high: Array) -> tuple[Array, ...]:
    """Convert from 32 bits to 8 bits and another range, in 64-bit integer arithmetic."""
    names = ("input_min", "input_max", "requested_output_min", "requested_output_max")
    limits = [_F32(_number(e, name)) for e, name in zip((low, high, requested_low, requested_high), names, strict=True)]
    least, most, bottom, top = limits
    if bottom > 0 or top < bottom:
        raise InvalidArgumentError(
            f"the requested range [{bottom}, {top}] must begin at 0 or below, and not be reversed"
        )
    width = top - bottom
    if width == 0:
        numbers = np.zeros(x.shape, np.int64)
    else:
        scale = int(255.0 * _FIXED_POINT_ONE * float(most - least) / float(width))
        middle = int(float((least + most) / _F32(2)) * (255.0 / float(width)) * _FIXED_POINT_ONE)
        offset = int(_FIXED_POINT_ONE * (float(bottom) * 255.0) / float(width))
        numbers = (((x.astype(np.int64) * scale) >> 32) + middle - offset + _FIXED_POINT_ONE // 2) >> 16
    return np.clip(numbers, 0, 255).astype(np.uint8), np.asarray(bottom), np.asarray(top)
