"""Arithmetic on NumPy integers as HLO defines it: everything wraps, nothing traps.

Each function takes the width in bits first: types below a byte are stored in bytes, sign-extended, and the caller
truncates the result to its width.
"""

from __future__ import annotations

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


def divide(bits: int, x: Array, y: Array) -> Array:
    """Divide towards zero; a quotient by zero has all bits set."""
    safe = np.where(y == 0, y.dtype.type(1), y)
    floor = x // safe
    inexact = floor * safe != x
    quotient = floor + (inexact & ((x < 0) != (safe < 0)))
    return np.where(y == 0, np.invert(np.zeros_like(x)), quotient)


def remainder(bits: int, x: Array, y: Array) -> Array:
    """Return the remainder, of the dividend's sign; the dividend for a divisor of zero."""
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, y.dtype.type(1), y)))


def power(bits: int, x: Array, y: Array) -> Array:
    """Raise by repeated squaring; a negative exponent gives 1, -1 or 0."""
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


def shift_left(bits: int, x: Array, y: Array) -> Array:
    """Shift left; by the width or more gives zero."""
    amount = unsigned(bits, y)
    too_far = amount >= bits
    return np.asarray(np.where(too_far, x.dtype.type(0), x << np.where(too_far, 0, amount).astype(x.dtype)))


def shift_right_logical(bits: int, x: Array, y: Array) -> Array:
    """Shift right, filling with zeros; by the width or more gives zero."""
    amount, value = unsigned(bits, y), unsigned(bits, x)
    too_far = amount >= bits
    return np.asarray(np.where(too_far, value.dtype.type(0), value >> np.where(too_far, 0, amount).astype(value.dtype)))


def shift_right_arithmetic(bits: int, x: Array, y: Array) -> Array:
    """Shift right, filling with the sign."""
    amount = np.minimum(unsigned(bits, y), bits - 1)
    value = signed(bits, x)
    return np.asarray(value >> amount.astype(value.dtype))


def count_leading_zeros(bits: int, x: Array) -> Array:
    """Count the zeros above the highest set bit."""
    remaining = unsigned(bits, x)
    length = np.zeros(x.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        if step < 8 * remaining.dtype.itemsize:
            high = remaining >= remaining.dtype.type(1 << step)
            length += np.where(high, step, 0)
            remaining = np.where(high, remaining >> remaining.dtype.type(step), remaining)
    return np.asarray(bits - (length + (remaining != 0)))


def mulhi(bits: int, x: Array, y: Array) -> Array:
    """Return the upper half of the product."""
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
