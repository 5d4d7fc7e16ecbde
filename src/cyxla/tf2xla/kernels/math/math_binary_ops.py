"""Element-wise functions of two broadcasting arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cyxla.core.framework.types import COMPLEX, FLOATING, NUMBER, DataType
from cyxla.errors import ShapeError
from cyxla.tf2xla.lib.typed_values import cast
from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import special
from cyxla.xla.lib.values import (
    full_like,
    in_f32,
    is_complex,
    is_float,
    is_integer,
    paired,
    scalar,
    select,
    sizes_of,
    zeros_like,
)

Binary = Callable[[XlaOp, XlaOp], XlaOp]
_INEXACT = {"T": FLOATING + COMPLEX}


def _conj(x: XlaOp) -> XlaOp:
    return xla.complex_(xla.real(x), -xla.imag(x)) if is_complex(x) else x


def _is_unsigned(x: XlaOp) -> bool:
    return x.shape.dtype.text.startswith("u")


def _is_zero(x: XlaOp) -> XlaOp:
    return xla.eq(x, zeros_like(x))


def _differ_in_sign(x: XlaOp, y: XlaOp) -> XlaOp:
    return xla.ne(xla.lt(x, zeros_like(x)), xla.lt(y, zeros_like(y)))


def _floor_div(x: XlaOp, y: XlaOp) -> XlaOp:
    """Divide and round down: an inexact integer quotient of operands with different signs is decremented."""
    if is_float(x):
        return xla.floor(x / y)
    if _is_unsigned(x):
        return x / y
    quotient = x / y
    inexact = xla.and_(xla.ne(quotient * y, x), _differ_in_sign(x, y))
    return select(inexact, quotient - scalar(x, 1), quotient)


def _floor_mod(x: XlaOp, y: XlaOp) -> XlaOp:
    """Return the remainder of the floored quotient, which has the sign of y."""
    remainder = xla.remainder(x, y)
    if _is_unsigned(x):
        return remainder
    wrong = xla.and_(xla.not_(_is_zero(remainder)), _differ_in_sign(remainder, y))
    return select(wrong, remainder + y, remainder)


def _divide_no_nan(x: XlaOp, y: XlaOp) -> XlaOp:
    return select(_is_zero(y), zeros_like(x), x / y)


def _unless_zero(function: Binary) -> Binary:
    """Wrap a function so that the result is 0 wherever x is 0."""
    return lambda x, y: select(_is_zero(x), zeros_like(x), function(x, y))


def _power(x: XlaOp, y: XlaOp) -> XlaOp:
    return xla.power(x, y)


def _squared_difference(x: XlaOp, y: XlaOp) -> XlaOp:
    difference = x - y
    return difference * _conj(difference)


def _register(name: str, function: Binary, types: Any = None) -> None:
    lowering(name, lambda x, y: function(*paired(x, y)), types=types)


# fmt: off
_register("Add",               xla.add)
_register("AddV2",             xla.add)
_register("Sub",               xla.subtract)
_register("Mul",               xla.multiply)
_register("Div",               xla.divide)
_register("RealDiv",           xla.divide,     {"T": NUMBER})
_register("TruncateDiv",       lambda x, y: x / y if is_integer(x) else _towards_zero(x / y))
_register("FloorDiv",          _floor_div)
_register("FloorMod",          _floor_mod)
_register("Mod",               xla.remainder)
_register("TruncateMod",       xla.remainder)
_register("DivNoNan",          _divide_no_nan, _INEXACT)
_register("MulNoNan",          lambda x, y: select(_is_zero(y), zeros_like(x), x * y), _INEXACT)
_register("Xdivy",             _unless_zero(xla.divide), _INEXACT)
_register("Xlogy",             _unless_zero(lambda x, y: x * xla.log(y)), _INEXACT)
_register("Xlog1py",           _unless_zero(lambda x, y: x * xla.log_plus_one(y)), _INEXACT)
_register("Pow",               _power)
_register("Maximum",           xla.maximum)
_register("Minimum",           xla.minimum)
_register("SquaredDifference", _squared_difference)
_register("Atan2",             xla.atan2)
_register("NextAfter",         special.next_after)
_register("Greater",           xla.gt)
_register("GreaterEqual",      xla.ge)
_register("Less",              xla.lt)
_register("LessEqual",         xla.le)
_register("LogicalAnd",        xla.and_)
_register("LogicalOr",         xla.or_)
# Gradients in terms of the result y and its gradient dy.
_register("ReciprocalGrad",    in_f32(lambda y, dy: -_conj(y) * _conj(y) * dy),                             _INEXACT)
_register("SqrtGrad",          in_f32(lambda y, dy: dy * scalar(y, 0.5) / _conj(y)),                        _INEXACT)
_register("RsqrtGrad",         in_f32(lambda y, dy: scalar(y, -0.5) * dy * _conj(y) * _conj(y) * _conj(y)), _INEXACT)
_register("SigmoidGrad",       in_f32(lambda y, dy: dy * _conj(y) * (scalar(y, 1) - _conj(y))),             _INEXACT)
_register("TanhGrad",          in_f32(lambda y, dy: dy * (scalar(y, 1) - _conj(y) * _conj(y))),             _INEXACT)
# fmt: on


def _towards_zero(x: XlaOp) -> XlaOp:
    return select(xla.lt(x, zeros_like(x)), xla.ceil(x), xla.floor(x))


def _register_equality(name: str, compare: Binary, otherwise: bool) -> None:
    @lowering(name, attrs=("incompatible_shape_error",))
    def kernel(x: XlaOp, y: XlaOp, *, incompatible_shape_error: bool) -> Any:
        """Compare; shapes that do not broadcast raise, or count as unequal."""
        try:
            return compare(*paired(x, y))
        except ShapeError:
            if incompatible_shape_error:
                raise
            return otherwise


_register_equality("Equal", xla.eq, False)
_register_equality("NotEqual", xla.ne, True)


@lowering("ApproximateEqual", attrs=("tolerance",))
def _approximate_equal(x: XlaOp, y: XlaOp, *, tolerance: float) -> XlaOp:
    if sizes_of(x) != sizes_of(y):
        raise ShapeError(f"x {list(sizes_of(x))} and y {list(sizes_of(y))} must have one shape")
    size = select(xla.lt(x, y), y - x, x - y) if _is_unsigned(x) else xla.abs_(x - y)
    return xla.lt(size, full_like(size, tolerance))


@lowering("Complex", attrs=("Tout",))
def _complex(real: XlaOp, imag: XlaOp, *, Tout: DataType) -> XlaOp:
    return cast(xla.complex_(*paired(real, imag)), Tout)
