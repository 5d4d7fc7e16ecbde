"""Arithmetic on NumPy integers as HLO defines it: everything wraps, nothing traps.

Each function takes the width in bits first: types below a byte are stored in bytes, sign-extended, and the caller
truncates the result to its width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.xla.evaluator.values import Array


def unsigned(bits: int, x: Array) -> Array:
    """Return the bits as an unsigned number."""
    view = x.view(f"u{x.dtype.itemsize}")
    return view if bits >= 8 else view & np.uint8((1 << bits) - 1)


def signed(bits: int, x: Array) -> Array:
    """Return the bits as a two's complement number."""
    view = x.view(f"i{x.dtype.itemsize}")
    return view if bits >= 8 else (view << np.int8(8 - bits)) >> np.int8(8 - bits)


def _divide(bits: int, x: Array, y: Array) -> Array:
    safe = np.where(y == 0, y.dtype.type(1), y)
    floor = x // safe
    inexact = floor * safe != x
    quotient = floor + (inexact & ((x < 0) != (safe < 0)))
    return np.where(y == 0, np.invert(np.zeros_like(x)), quotient)


def _remainder(bits: int, x: Array, y: Array) -> Array:
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, y.dtype.type(1), y)))


def _power(bits: int, x: Array, y: Array) -> Array:
    base, remaining = np.broadcast_arrays(x, unsigned(bits, y))
    result = np.ones_like(base)
    while (remaining != 0).any():
        result = np.where(remaining & remaining.dtype.type(1), result * base, result)
        base, remaining = base * base, remaining >> remaining.dtype.type(1)
    if x.dtype.kind == "u":
        return result
    odd = (y & y.dtype.type(1)) != 0
    inverse = np.where(x == 1, 1, np.where(x == -1, np.where(odd, -1, 1), 0)).astype(x.dtype)
    return np.where(y < 0, inverse, result)


def _shift_left(bits: int, x: Array, y: Array) -> Array:
    amount = unsigned(bits, y)
    too_far = amount >= bits
    return np.asarray(np.where(too_far, x.dtype.type(0), x << np.where(too_far, 0, amount).astype(x.dtype)))


def _shift_right_logical(bits: int, x: Array, y: Array) -> Array:
    amount, value = unsigned(bits, y), unsigned(bits, x)
    too_far = amount >= bits
    return np.asarray(np.where(too_far, value.dtype.type(0), value >> np.where(too_far, 0, amount).astype(value.dtype)))


def _shift_right_arithmetic(bits: int, x: Array, y: Array) -> Array:
    amount = np.minimum(unsigned(bits, y), bits - 1)
    value = signed(bits, x)
    return np.asarray(value >> amount.astype(value.dtype))


def _count_leading_zeros(bits: int, x: Array) -> Array:
    remaining = unsigned(bits, x)
    length = np.zeros(x.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        if step < 8 * remaining.dtype.itemsize:
            high = remaining >= remaining.dtype.type(1 << step)
            length += np.where(high, step, 0)
            remaining = np.where(high, remaining >> remaining.dtype.type(step), remaining)
    return np.asarray(bits - (length + (remaining != 0)))


def _mulhi(bits: int, x: Array, y: Array) -> Array:
    if bits <= 32:
        return (
            (x.astype(np.int64) * y.astype(np.int64)) >> bits if x.dtype.kind == "i" else _unsigned_mulhi32(bits, x, y)
        )
    high = _unsigned_mulhi64(x.view(np.uint64), y.view(np.uint64))
    if x.dtype.kind == "u":
        return high
    return high.view(np.int64) - np.where(x < 0, y, 0) - np.where(y < 0, x, 0)


def _unsigned_mulhi32(bits: int, x: Array, y: Array) -> Array:
    return (x.astype(np.uint64) * y.astype(np.uint64)) >> np.uint64(bits)


def _unsigned_mulhi64(x: Array, y: Array) -> Array:
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    x1, x0, y1, y0 = x >> half, x & low, y >> half, y & low
    middle = x1 * y0 + ((x0 * y0) >> half)
    other = x0 * y1 + (middle & low)
    return np.asarray(x1 * y1 + (middle >> half) + (other >> half))


def _without_bits(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    return lambda bits, *operands: ufunc(*operands)


# fmt: off
INTEGER: dict[str, Callable[..., Any]] = {
    "abs":                    _without_bits(np.abs),
    "negate":                 _without_bits(np.negative),
    "sign":                   _without_bits(np.sign),
    "not":                    _without_bits(np.invert),
    "popcnt":                 lambda bits, x: np.bitwise_count(unsigned(bits, x)),
    "count-leading-zeros":    _count_leading_zeros,
    "add":                    _without_bits(np.add),
    "subtract":               _without_bits(np.subtract),
    "multiply":               _without_bits(np.multiply),
    "divide":                 _divide,
    "remainder":              _remainder,
    "power":                  _power,
    "maximum":                _without_bits(np.maximum),
    "minimum":                _without_bits(np.minimum),
    "and":                    _without_bits(np.bitwise_and),
    "or":                     _without_bits(np.bitwise_or),
    "xor":                    _without_bits(np.bitwise_xor),
    "shift-left":             _shift_left,
    "shift-right-arithmetic": _shift_right_arithmetic,
    "shift-right-logical":    _shift_right_logical,
    "mulhi":                  _mulhi,
}

PREDICATE: dict[str, Callable[..., Any]] = {
    "not":      np.logical_not,
    "add":      np.logical_or,
    "multiply": np.logical_and,
    "maximum":  np.logical_or,
    "minimum":  np.logical_and,
    "and":      np.logical_and,
    "or":       np.logical_or,
    "xor":      np.logical_xor,
}
# fmt: on
