"""Functions of one array, element by element."""

from __future__ import annotations

from cyxla.core.framework.types import COMPLEX, FLOATING, SIGNED, DataType
from cyxla.tf2xla.lib import cast
from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import special
from cyxla.xla.lib.values import full_like, in_f32, is_complex, is_integer, scalar, select, zeros_like

_INEXACT = {"T": FLOATING + COMPLEX}
_FLOATS = {"T": FLOATING}


def _reciprocal(x: XlaOp) -> XlaOp:
    return scalar(x, 1) / x


def _round(x: XlaOp) -> XlaOp:
    """Halves go to the even neighbour, of complex numbers in both parts; integers stay."""
    if is_complex(x):
        return xla.complex_(*(xla.round_nearest_even(part) for part in (xla.real(x), xla.imag(x))))
    return x if is_integer(x) else xla.round_nearest_even(x)


def _conj(x: XlaOp) -> XlaOp:
    return xla.complex_(xla.real(x), -xla.imag(x)) if is_complex(x) else x


# Inverses of complex numbers, by real functions of their parts: W. Kahan, "Branch cuts for complex elementary
# functions, or much ado about nothing's sign bit", 1987.


def _roots(x: XlaOp) -> tuple[XlaOp, XlaOp]:
    """The square roots of 1 - x and of 1 + x, on the right sides of their cuts."""
    re, im = xla.real(x), xla.imag(x)
    one = full_like(re, 1)
    return xla.sqrt(xla.complex_(one - re, -im)), xla.sqrt(xla.complex_(one + re, im))


def _crossed(a: XlaOp, b: XlaOp) -> XlaOp:
    """The imaginary part of conj(a) * b."""
    return xla.real(a) * xla.imag(b) - xla.imag(a) * xla.real(b)


def _asin(x: XlaOp) -> XlaOp:
    if not is_complex(x):
        return xla.asin(x)
    below, above = _roots(x)
    product = xla.real(below) * xla.real(above) - xla.imag(below) * xla.imag(above)
    return xla.complex_(xla.atan2(xla.real(x), product), xla.asinh(_crossed(below, above)))


def _acos(x: XlaOp) -> XlaOp:
    if not is_complex(x):
        return xla.acos(x)
    below, above = _roots(x)
    half = xla.atan2(xla.real(below), xla.real(above))
    return xla.complex_(half + half, xla.asinh(_crossed(above, below)))


def _acosh(x: XlaOp) -> XlaOp:
    if not is_complex(x):
        return xla.acosh(x)
    re, im = xla.real(x), xla.imag(x)
    one = full_like(re, 1)
    below, above = (xla.sqrt(xla.complex_(part, im)) for part in (re - one, re + one))
    half = xla.atan2(xla.imag(below), xla.real(above))
    along = xla.real(below) * xla.real(above) + xla.imag(below) * xla.imag(above)
    return xla.complex_(xla.asinh(along), half + half)


def _asinh(x: XlaOp) -> XlaOp:
    if not is_complex(x):
        return xla.asinh(x)
    turned = _asin(xla.complex_(-xla.imag(x), xla.real(x)))
    return xla.complex_(xla.imag(turned), -xla.real(turned))


def _atanh(x: XlaOp) -> XlaOp:
    if not is_complex(x):
        return xla.atanh(x)
    re, im = xla.real(x), xla.imag(x)
    one, quarter, half = (full_like(re, n) for n in (1, 0.25, 0.5))
    size = xla.abs_(re)
    apart = (one - size) * (one - size) + im * im
    along = quarter * xla.log_plus_one(full_like(re, 4) * size / apart)
    angle = xla.atan2(im + im, (one - re) * (one + re) - im * im)
    return xla.complex_(select(xla.lt(re, zeros_like(re)), -along, along), half * angle)


def _atan(x: XlaOp) -> XlaOp:
    """Against 1; of complex numbers the other function, a quarter turn before and after it."""
    if not is_complex(x):
        return xla.atan2(x, full_like(x, 1))
    turned = _atanh(xla.complex_(-xla.imag(x), xla.real(x)))
    return xla.complex_(xla.imag(turned), -xla.real(turned))


def _is_inf(x: XlaOp) -> XlaOp:
    return xla.eq(xla.abs_(x), full_like(x, float("inf")))


# fmt: off
lowering("Abs",                   xla.abs_)
lowering("Neg",                   xla.negate)
lowering("Sign",                  xla.sign)
lowering("Square",                lambda x: x * x)
lowering(("Inv", "Reciprocal"),   _reciprocal,               types={"T": FLOATING + COMPLEX + SIGNED})
lowering("Sqrt",                  xla.sqrt,                  types=_INEXACT)
lowering("Rsqrt",                 xla.rsqrt,                 types=_INEXACT)
lowering("Exp",                   xla.exponential,           types=_INEXACT)
lowering("Expm1",                 xla.exponential_minus_one, types=_INEXACT)
lowering("Log",                   xla.log,                   types=_INEXACT)
lowering("Log1p",                 xla.log_plus_one,          types=_INEXACT)
lowering("Sin",                   xla.sine,                  types=_INEXACT)
lowering("Cos",                   xla.cosine,                types=_INEXACT)
lowering("Tan",                   xla.tan,                   types=_INEXACT)
lowering("Asin",                  in_f32(_asin),            types=_INEXACT)
lowering("Acos",                  in_f32(_acos),            types=_INEXACT)
lowering("Atan",                  in_f32(_atan),            types=_INEXACT)
lowering("Sinh",                  in_f32(xla.sinh),          types=_INEXACT)
lowering("Cosh",                  in_f32(xla.cosh),          types=_INEXACT)
lowering("Tanh",                  xla.tanh,                  types=_INEXACT)
lowering("Asinh",                 in_f32(_asinh),           types=_INEXACT)
lowering("Acosh",                 in_f32(_acosh),           types=_INEXACT)
lowering("Atanh",                 in_f32(_atanh),           types=_INEXACT)
lowering("Sigmoid",               xla.logistic,              types=_INEXACT)
lowering("Ceil",                  xla.ceil,                  types=_FLOATS)
lowering("Floor",                 xla.floor,                 types=_FLOATS)
lowering("Rint",                  xla.round_nearest_even,    types=_FLOATS)
lowering("Round",                 _round)
lowering("Erf",                   xla.erf,                   types=_FLOATS)
lowering("Erfc",                  in_f32(special.erfc),      types=_FLOATS)
lowering("LogicalNot",            xla.not_)
lowering("IsFinite",              xla.is_finite)
lowering("IsInf",                 _is_inf)
lowering("IsNan",                 lambda x: xla.ne(x, x))
lowering("Conj",                  _conj)
lowering("ComplexAbs",            lambda x, *, Tout: cast(xla.abs_(x), Tout), attrs=("Tout",))
lowering("Real",                  lambda x, *, Tout: cast(xla.real(x), Tout), attrs=("Tout",))
lowering("Imag",                  lambda x, *, Tout: cast(xla.imag(x), Tout), attrs=("Tout",))
# fmt: on


@lowering("Angle", attrs=("Tout",))
def _angle(x: XlaOp, *, Tout: DataType) -> XlaOp:
    return cast(xla.atan2(xla.imag(x), xla.real(x)), Tout)
