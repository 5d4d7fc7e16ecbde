"""Element-wise functions of two broadcasting arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.numeric_limits import is_integer, wide_type
from cyxla.core.framework.types import COMPLEX, FLOATING, NUMBER, REAL, DataType, as_data_type
from cyxla.core.kernels.lib.elementwise import Array, Binary, binary, check_broadcast, check_same_shape, log1p
from cyxla.core.kernels.lib.integer_division import check_divisor, floor_div, floor_mod, truncate_div, truncate_mod
from cyxla.errors import InternalError, InvalidArgumentError, ShapeError

_INEXACT = FLOATING + COMPLEX
_STRING = as_data_type("string")


def _quotient(x: Array, y: Array) -> Array:
    """Divide; integer quotients are rounded towards zero."""
    return truncate_div(x, y) if is_integer(x.dtype) else x / y


def _internal_error_on_zero(function: Binary) -> Binary:
    """Wrap a division so that division by zero is an internal error, as in TensorFlow."""

    def divide(x: Array, y: Array) -> Array:
        check_divisor(y, InternalError)
        return np.asarray(function(x, y))

    return divide


def _divide_no_nan(x: Array, y: Array) -> Array:
    return np.where(y == 0, 0, x / np.where(y == 0, 1, y))


def _power(x: Array, y: Array) -> Array:
    if is_integer(x.dtype) and x.dtype.kind == "i" and (y < 0).any():
        raise InvalidArgumentError("integers to negative integer powers are not integers", hint="cast to a float")
    return np.asarray(np.power(x, y))


def _squared_difference(x: Array, y: Array) -> Array:
    difference = x - y
    return np.asarray(difference * np.conj(difference))


def _times_unless_zero(function: Any) -> Binary:
    """Multiply x by a function of y; the result is 0 wherever x is 0."""
    return lambda x, y: np.where(x == 0, 0, x * function(y))


# fmt: off
binary("Add",               np.add,         NUMBER)
binary("AddV2",             np.add,         NUMBER)
binary("Sub",               np.subtract,    NUMBER)
binary("Mul",               np.multiply,    NUMBER)
binary("Div",               _quotient,      NUMBER)
binary("RealDiv",           np.divide,      _INEXACT)
binary("TruncateDiv",       _internal_error_on_zero(truncate_div), REAL)
binary("FloorDiv",          floor_div,      REAL)
binary("FloorMod",          floor_mod,      REAL)
binary("Mod",               truncate_mod,   REAL)
binary("TruncateMod",       _internal_error_on_zero(truncate_mod), REAL)
binary("DivNoNan",          _divide_no_nan, _INEXACT)
binary("MulNoNan",          lambda x, y: np.where(y == 0, 0, x * y), _INEXACT)
binary("Xdivy",             lambda x, y: np.where(x == 0, 0, x / y), _INEXACT)
binary("Xlogy",             _times_unless_zero(np.log),   _INEXACT)
binary("Xlog1py",           _times_unless_zero(log1p), _INEXACT)
binary("Pow",               _power,         NUMBER)
binary("Maximum",           np.maximum,     REAL)
binary("Minimum",           np.minimum,     REAL)
binary("SquaredDifference", _squared_difference, NUMBER)
binary("Atan2",             np.arctan2,     FLOATING)
binary("NextAfter",         np.nextafter,   FLOATING[2:])
binary("Greater",           np.greater,       REAL, np.bool_)
binary("GreaterEqual",      np.greater_equal, REAL, np.bool_)
binary("Less",              np.less,          REAL, np.bool_)
binary("LessEqual",         np.less_equal,    REAL, np.bool_)
binary("LogicalAnd",        np.logical_and)
binary("LogicalOr",         np.logical_or)
# fmt: on

# Gradients of functions in terms of their results y and the results' gradients dy.
# fmt: off
binary("ReciprocalGrad", lambda y, dy: -np.conj(y) * np.conj(y) * dy,            _INEXACT, same_shape=True)
binary("SqrtGrad",       lambda y, dy: dy * y.dtype.type(0.5) / np.conj(y),       _INEXACT, same_shape=True)
binary("RsqrtGrad",      lambda y, dy: y.dtype.type(-0.5) * dy * np.conj(y) ** 3, _INEXACT, same_shape=True)
binary("SigmoidGrad",    lambda y, dy: dy * np.conj(y) * (1 - np.conj(y)),        _INEXACT, same_shape=True)
binary("TanhGrad",       lambda y, dy: dy * (1 - np.conj(y) * np.conj(y)),        _INEXACT, same_shape=True)
# fmt: on


@array_kernel(("Add", "AddV2"), types={"T": (_STRING,)})
def _concatenate_strings(x: Array, y: Array) -> Array:
    check_broadcast(x, y)
    return np.asarray(np.add(x, y), object)


def _equality(name: str, function: Any, otherwise: bool) -> None:
    @array_kernel(name, attrs=("incompatible_shape_error",))
    def kernel(x: Array, y: Array, *, incompatible_shape_error: bool) -> Array:
        """Compare; shapes that do not broadcast raise, or count as unequal."""
        try:
            check_broadcast(x, y)
        except ShapeError:
            if incompatible_shape_error:
                raise
            return np.array(otherwise)
        return np.asarray(function(x, y)).astype(np.bool_)


_equality("Equal", np.equal, False)
_equality("NotEqual", np.not_equal, True)


@array_kernel("ApproximateEqual", attrs=("tolerance",), types={"T": NUMBER})
def _approximate_equal(x: Array, y: Array, *, tolerance: float) -> Array:
    check_same_shape(x, y)
    wide = wide_type(x.dtype)
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(x.astype(wide) - y.astype(wide)) < wide.type(tolerance))


@array_kernel("Complex", attrs=("Tout",))
def _complex(real: Array, imag: Array, *, Tout: DataType) -> Array:
    check_broadcast(real, imag)
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), Tout.numpy)
    result.real, result.imag = real, imag
    return result
