"""Registration of element-wise kernels.

The kernels do not silence NumPy's warnings: the executor does so once per run, since `errstate` costs more than a small
kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.numeric_limits import wide_type
from cyxla.core.framework.types import DataType
from cyxla.errors import ShapeError

Array = np.ndarray[Any, Any]
Unary = Callable[[Array], Any]
Binary = Callable[[Array, Array], Any]


def unary(name: str | Sequence[str], function: Unary, types: Sequence[DataType] | None = None) -> None:
    """Register a function of one array; narrow floats go through f32, and the result has the operand's type."""

    @wraps(function)
    def kernel(x: Array) -> Any:
        wide = wide_type(x.dtype)
        computed = function(x if wide is x.dtype else x.astype(wide))
        return computed if computed.dtype is x.dtype else computed.astype(x.dtype)

    array_kernel(name, kernel, types=None if types is None else {"T": types})


def binary(
    name: str | Sequence[str],
    function: Binary,
    types: Sequence[DataType] | None = None,
    result: Any = None,
    same_shape: bool = False,
) -> None:
    """Register a broadcasting function of two arrays; the result has their type, or `result` if given.

    Parameters
    ----------
    same_shape : bool
        True if the operands must have equal shapes instead of broadcasting.
    """

    @wraps(function)
    def kernel(x: Array, y: Array) -> Any:
        if x.shape != y.shape:
            check_same_shape(x, y) if same_shape else check_broadcast(x, y)
        wide = wide_type(x.dtype)
        computed = function(x, y) if wide is x.dtype else function(x.astype(wide), y.astype(wide))
        dtype = x.dtype if result is None else result
        return computed if computed.dtype == dtype else computed.astype(dtype)

    array_kernel(name, kernel, types=None if types is None else {"T": types})


def check_broadcast(x: Array, y: Array) -> None:
    """Raise if shapes do not broadcast.

    Raises
    ------
    ShapeError
        Two sizes differ, and neither is 1.
    """
    for a, b in zip(reversed(x.shape), reversed(y.shape), strict=False):
        if a != b and 1 not in (a, b):
            raise ShapeError(f"incompatible shapes: {list(x.shape)} and {list(y.shape)} do not broadcast")


def check_same_shape(x: Array, y: Array) -> None:
    """Raise if operands have different shapes.

    Raises
    ------
    ShapeError
        The shapes differ.
    """
    if x.shape != y.shape:
        raise ShapeError(f"the operands must have one shape; they have {list(x.shape)} and {list(y.shape)}")


def log1p(x: Array) -> Array:
    """Return log(1 + x); for complex numbers, correct the rounding error of 1 + x."""
    if x.dtype.kind != "c":
        return np.asarray(np.log1p(x))
    shifted = 1 + x
    log_shifted = np.log(shifted)
    corrected = x * (log_shifted / (shifted - 1))
    return np.asarray(np.where(shifted == 1, x, np.where(np.isfinite(corrected), corrected, log_shifted)))
