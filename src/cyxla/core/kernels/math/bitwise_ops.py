"""Bitwise operations on integers."""

from __future__ import annotations

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.kernels.lib.elementwise import Array, binary, unary


def _clamp_shift(x: Array, y: Array) -> Array:
    """Clamp shifts to the width of the type; larger ones are undefined in C."""
    return np.clip(y, 0, np.asarray(8 * x.dtype.itemsize - 1, x.dtype))


binary("BitwiseAnd", np.bitwise_and)
binary("BitwiseOr", np.bitwise_or)
binary("BitwiseXor", np.bitwise_xor)
binary("LeftShift", lambda x, y: np.left_shift(x, _clamp_shift(x, y)))
binary("RightShift", lambda x, y: np.right_shift(x, _clamp_shift(x, y)))
unary("Invert", np.invert)


@array_kernel("PopulationCount")
def _population_count(x: Array) -> Array:
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(np.uint8)
