"""Opcodes that convert element types: values, bits, and rounding to fewer bits."""

from __future__ import annotations

import numpy as np

from cyxla.types import ElementType, from_numpy
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.numerics.conversion import bitcast_array, convert_array, round_float
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import Array
from cyxla.xla.hlo.instruction import Instruction


@evaluates("convert")
def convert(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Convert values; see `convert_array`."""
    return convert_array(x, ins.shape.dtype)


# --- bits ---


@evaluates("bitcast-convert")
def bitcast_convert(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Reinterpret bits; a change of width adds or drops a last dimension, in little-endian order."""
    return bitcast_array(x, ins.shape.dtype)


# --- fewer bits ---

_MANTISSA = {ElementType.F16: 10, ElementType.BF16: 7, ElementType.F32: 23, ElementType.F64: 52}


@evaluates("reduce-precision")
def reduce_precision(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Round to fewer bits of exponent and mantissa, in the same type."""
    element = from_numpy(x.dtype)
    exponent, mantissa = int(ins.attrs["exponent_bits"]), int(ins.attrs["mantissa_bits"])
    if element not in _MANTISSA:  # an 8-bit float, whose values are all in f16 or f32
        return round_float(_reduce(x.astype(np.float32), ElementType.F32, exponent, mantissa), element)
    return _reduce(x, element, exponent, mantissa)


def _reduce(x: Array, element: ElementType, exponent_bits: int, mantissa_bits: int) -> Array:
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    mantissa = _MANTISSA[element]
    exponent = element.bits - 1 - mantissa
    bits = np.ascontiguousarray(x).reshape(x.shape).view(unsigned)
    if mantissa_bits < mantissa:
        bits = _round_bits(bits, mantissa - mantissa_bits)
    if exponent_bits < exponent:
        bits = _clip_exponent(bits, element, exponent, mantissa, exponent_bits)
    result: Array = bits.astype(unsigned, copy=False).view(x.dtype)
    return np.where(np.isnan(x), x, result)


def _round_bits(bits: Array, drop: int) -> Array:
    kind = bits.dtype.type
    last = (bits >> kind(drop)) & kind(1)
    bias = last + kind((1 << (drop - 1)) - 1)
    mask = np.iinfo(bits.dtype).max & ~((1 << drop) - 1)
    return np.asarray((bits + bias) & kind(mask))


def _clip_exponent(bits: Array, element: ElementType, exponent: int, mantissa: int, exponent_bits: int) -> Array:
    """Turn overflow into infinity, and numbers below the smaller format's normal range into zero."""
    kind = bits.dtype.type
    bias, small_bias = (1 << (exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
    infinity = ((1 << exponent) - 1) << mantissa
    sign, magnitude = bits & kind(1 << (element.bits - 1)), bits & kind(infinity)
    bits = np.where(magnitude > kind((bias + small_bias) << mantissa), sign | kind(infinity), bits)
    return np.asarray(np.where(magnitude <= kind((bias - small_bias) << mantissa), sign, bits))


@evaluates("stochastic-convert")
def stochastic_convert(ev: Evaluation, ins: Instruction, x: Array, random: Array) -> Array:
    """Truncate, and step away from zero if the fraction, as bits, is greater than the random bits."""
    wide = np.abs(x.astype(np.float64))
    truncated = np.floor(wide)
    bits = from_numpy(random.dtype).bits
    fraction = np.ldexp(wide - truncated, bits)
    fraction = np.where(np.isfinite(fraction), np.trunc(fraction), 0.0)
    up = random.astype(np.uint64) < fraction.astype(np.uint64)
    return convert_array(np.copysign(truncated + up, x.astype(np.float64)), ins.shape.dtype)
