"""Conversions of arrays between element types: of values, of bits, and rounding to narrower floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.errors import DTypeError
from cyxla.types import ElementType, from_numpy
from cyxla.xla.evaluator.values import Array


def convert_array(x: Array, target: ElementType) -> Array:
    """Convert values as HLO does.

    Floats become integers by truncation with saturation, and NaN becomes 0. Integers keep their low bits. Conversions
    to
    floats are rounded once, to nearest even. Complex numbers lose their imaginary part if the result is real.
    """
    source = from_numpy(x.dtype)
    if source is target:
        return x
    if source.is_complex and not target.is_complex:
        return convert_array(x.real, target)
    if target is ElementType.PRED:
        return _to_pred(x, source)
    if target.is_integer:
        return _float_to_integer(x, target) if source.is_float else _integer_to_integer(x, source, target)
    if target.is_complex:
        part = x if source.is_complex else convert_array(x, target.real_part)
        return part.astype(dtype_of(target))
    return round_float(x, target) if source.is_float else _integer_to_float(x, source, target)


def bitcast_array(x: Array, target: ElementType) -> Array:
    """Reinterpret bits as another type, see `bitcast_convert`."""
    source = from_numpy(x.dtype)
    if source.bits == target.bits and min(source.bits, target.bits) >= 8:
        return np.ascontiguousarray(x).reshape(x.shape).view(dtype_of(target))
    if source.bits >= 8 and target.bits >= 8:
        return _bitcast_bytes(x, source, target)
    return _bitcast_bits(x, source, target)


def round_float(x: Array, to: ElementType) -> Array:
    """Round real floats of any width (long double too) once, to nearest even; overflow depends on the target type."""
    target = dtype_of(to)
    if to in (ElementType.F32, ElementType.F64, ElementType.F16) and x.dtype.char != "g":
        return x.astype(target)
    if x.dtype.char == "g":
        return x.astype(target) if to is ElementType.F64 else round_float(x.astype(np.float64), to)
    if x.dtype == np.float64:
        x = _odd_float32(x)
    return x.astype(np.float32).astype(target)


def widen_integer(x: Array) -> Array:
    """Store integers below a byte (and booleans) in a byte each; others are returned as they are."""
    element = from_numpy(x.dtype)
    if element.bits >= 8 and element is not ElementType.PRED:
        return x
    return x.astype(np.int8 if element.is_signed else np.uint8)


def wrap_integer(x: Array, target: ElementType) -> Array:
    """Keep the low bits of NumPy integers."""
    if target.bits >= 8:
        return x.astype(dtype_of(target))
    return (x & ((1 << target.bits) - 1)).astype(np.uint8).astype(dtype_of(target))


def integer_range(element: ElementType) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type."""
    if element.is_signed:
        return -(1 << (element.bits - 1)), (1 << (element.bits - 1)) - 1
    return 0, (1 << element.bits) - 1


def dtype_of(element: ElementType) -> np.dtype[Any]:
    """Return the NumPy dtype that holds elements of a type."""
    if element.numpy_dtype is None:
        raise DTypeError(f"{element} is not the type of an array")
    return element.numpy_dtype


def _to_pred(x: Array, source: ElementType) -> Array:
    wide = widen_integer(x) if source.is_integer else x.astype(np.float64)
    return np.asarray(wide != 0)


def _integer_to_integer(x: Array, source: ElementType, target: ElementType) -> Array:
    wide = widen_integer(x).astype(np.uint64 if source is ElementType.U64 else np.int64)
    return wrap_integer(wide, target)


def _float_to_integer(x: Array, target: ElementType) -> Array:
    truncated = np.trunc(x.astype(np.float64))
    low, high = integer_range(target)
    # high + 1 is a power of two, so it is exact as a float, unlike high
    inside = (truncated >= float(low)) & (truncated < float(high + 1))
    wide = np.int64 if target.is_signed else np.uint64
    in_range = np.where(inside, truncated, 0.0).astype(wide)
    limits = np.where(truncated > 0, np.array(high, wide), np.array(low, wide))
    outside = ~inside & ~np.isnan(truncated)
    return wrap_integer(np.where(outside, limits, in_range), target)


def _integer_to_float(x: Array, source: ElementType, target: ElementType) -> Array:
    wide = widen_integer(x)
    if target in (ElementType.F32, ElementType.F64):
        return wide.astype(dtype_of(target))
    return round_float(_odd_float64(wide) if source.bits == 64 else wide.astype(np.float64), target)


def _odd_float64(x: Array) -> Array:
    """Round 64-bit integers to odd, so that a second rounding to a narrow float is correct."""
    edge, low_bits = x.dtype.type(1 << 53), x & x.dtype.type(0xFFF)
    sticky = x - low_bits + x.dtype.type(0x800)
    is_large = (x > edge) | (x < -np.int64(edge)) if x.dtype.kind == "i" else x > edge
    return np.where(is_large & (low_bits != 0), sticky, x).astype(np.float64)


def _odd_float32(x: Array) -> Array:
    """Round to odd: toward zero, with the last bit set if the result is inexact."""
    nearest = x.astype(np.float32)
    truncated = np.where(np.abs(nearest.astype(np.float64)) > np.abs(x), np.nextafter(nearest, np.float32(0)), nearest)
    is_inexact = (truncated.astype(np.float64) != x) & ~np.isnan(x)
    return np.asarray(truncated.view(np.uint32) | is_inexact.astype(np.uint32)).view(np.float32)


def _bitcast_bytes(x: Array, source: ElementType, target: ElementType) -> Array:
    flat = np.ascontiguousarray(x).reshape(-1).view(dtype_of(target))
    if source.bits > target.bits:
        return flat.reshape(*x.shape, source.bits // target.bits)
    return flat.reshape(x.shape[:-1])


def _bitcast_bits(x: Array, source: ElementType, target: ElementType) -> Array:
    """Reinterpret bits through an array of single bits, for types below a byte."""
    bits: Array = np.unpackbits(np.ascontiguousarray(x).reshape(-1).view(np.uint8), bitorder="little")
    storage_bits = 8 * x.dtype.itemsize
    bits = bits.reshape(-1, storage_bits)[:, : source.bits].reshape(-1, target.bits)
    holder = dtype_of(target)
    padded = np.zeros((len(bits), 8 * holder.itemsize), np.uint8)
    padded[:, : target.bits] = bits
    flat = np.packbits(padded, axis=1, bitorder="little").reshape(-1).view(holder)
    if source.bits > target.bits:
        return flat.reshape(*x.shape, source.bits // target.bits)
    return flat.reshape(x.shape if source.bits == target.bits else x.shape[:-1])
