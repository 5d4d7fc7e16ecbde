"""Element-wise functions of one array."""

from __future__ import annotations

from cyxla.core.framework.types import COMPLEX, FLOATING, SIGNED, DataType
from cyxla.tf2xla.lib.typed_values import cast
from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import special
from cyxla.xla.lib.arctangent import atan
from cyxla.xla.lib.values import full_like, in_f32, is_complex, is_integer, scalar

_INEXACT = {"T": FLOATING + COMPLEX}
_FLOATS = {"T": FLOATING}


def _reciprocal(x: XlaOp) -> XlaOp:
    return scalar(x, 1) / x


def _round(x: XlaOp) -> XlaOp:
    """Round halves to even, in both parts of complex numbers; integers stay."""
    if is_complex(x):
        return xla.complex_(*(xla.round_nearest_even(part) for part in (xla.real(x), xla.imag(x))))
    return x if is_integer(x) else xla.round_nearest_even(x)


def _conj(x: XlaOp) -> XlaOp:
    return xla.complex_(xla.real(x), -xla.imag(x)) if is_complex(x) else x


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
lowering("Asin",                  in_f32(xla.asin),          types=_INEXACT)
lowering("Acos",                  in_f32(xla.acos),          types=_INEXACT)
lowering("Atan",                  in_f32(atan),              types=_INEXACT)
lowering("Sinh",                  in_f32(xla.sinh),          types=_INEXACT)
lowering("Cosh",                  in_f32(xla.cosh),          types=_INEXACT)
lowering("Tanh",                  xla.tanh,                  types=_INEXACT)
lowering("Asinh",                 in_f32(xla.asinh),         types=_INEXACT)
lowering("Acosh",                 in_f32(xla.acosh),         types=_INEXACT)
lowering("Atanh",                 in_f32(xla.atanh),         types=_INEXACT)
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
