"""Keys by which arrays are compared and sorted."""

from __future__ import annotations

import numpy as np

from cyxla.types import ElementType, from_numpy
from cyxla.xla.evaluator.numerics.conversion import widen_integer
from cyxla.xla.evaluator.values import Array


def comparable(x: Array) -> Array:
    """Return the elements in a type that NumPy can compare."""
    element = from_numpy(x.dtype)
    if element.is_integer:
        return widen_integer(x)
    return x.astype(np.float32) if element.is_float and element.bits < 32 else x


def total_order_key(x: Array) -> Array:
    """Return integers in the total order of the elements: -NaN < -inf < .. < -0 < +0 < .. < inf < NaN."""
    element = from_numpy(x.dtype)
    if not element.is_float:
        return comparable(x)
    size = x.dtype.itemsize
    bits = np.ascontiguousarray(x).reshape(x.shape).view(f"i{size}") << (8 * size - element.bits)
    if element is ElementType.F8E8M0FNU:  # without a sign
        return bits.view(np.uint8)
    if element.text.endswith("fnuz"):  # the only NaN has the bits of -0, and is the least
        return np.where(bits == -128, np.int16(-129), np.where(bits < 0, bits ^ np.int8(127), bits))
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
