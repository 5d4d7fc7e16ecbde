"""Element-wise functions of one array."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.numeric_limits import is_integer
from cyxla.core.framework.types import COMPLEX, FLOATING, DataType, as_data_type
from cyxla.core.kernels.lib.elementwise import Array, log1p, unary

_INEXACT = FLOATING + COMPLEX


def _scipy(name: str) -> Any:
    """Wrap a function of scipy.special, which is imported at the first call."""

    def function(x: Array) -> Array:
        import scipy.special

        return np.asarray(getattr(scipy.special, name)(x))

    return function


def _round(x: Array) -> Array:
    return x if is_integer(x.dtype) else np.rint(x)


def _sign(x: Array) -> Array:
    """Return x / |x|; 0 and NaN stay."""
    if x.dtype.kind != "c":
        return np.sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size))


def _sigmoid(x: Array) -> Array:
    """Compute the sigmoid without overflow on either side of 0."""
    if x.dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


# fmt: off
unary("Abs",                     np.abs)
unary("Neg",                     np.negative)
unary("Sign",                    _sign)
unary("Square",                  np.square)
unary(("Inv", "Reciprocal"),     lambda x: x.dtype.type(1) / x, _INEXACT)
unary("Sqrt",                    np.sqrt,     _INEXACT)
unary("Rsqrt",                   lambda x: x.dtype.type(1) / np.sqrt(x), _INEXACT)
unary("Exp",                     np.exp,      _INEXACT)
unary("Expm1",                   np.expm1,    _INEXACT)
unary("Log",                     np.log,      _INEXACT)
unary("Log1p",                   log1p,       _INEXACT)
unary("Sin",                     np.sin,      _INEXACT)
unary("Cos",                     np.cos,      _INEXACT)
unary("Tan",                     np.tan,      _INEXACT)
unary("Asin",                    np.arcsin,   _INEXACT)
unary("Acos",                    np.arccos,   _INEXACT)
unary("Atan",                    np.arctan,   _INEXACT)
unary("Sinh",                    np.sinh,     _INEXACT)
unary("Cosh",                    np.cosh,     _INEXACT)
unary("Tanh",                    np.tanh,     _INEXACT)
unary("Asinh",                   np.arcsinh,  _INEXACT)
unary("Acosh",                   np.arccosh,  _INEXACT)
unary("Atanh",                   np.arctanh,  _INEXACT)
unary("Sigmoid",                 _sigmoid,    _INEXACT)
unary("Ceil",                    np.ceil,     FLOATING)
unary("Floor",                   np.floor,    FLOATING)
unary("Rint",                    np.rint,     FLOATING)
unary("Round",                   _round)
unary("Erf",                     _scipy("erf"),  FLOATING)
unary("Erfc",                    _scipy("erfc"), FLOATING)
array_kernel("LogicalNot",       np.logical_not)
array_kernel("IsFinite",         np.isfinite, types={"T": FLOATING})
array_kernel("IsInf",            np.isinf,    types={"T": FLOATING})
array_kernel("IsNan",            np.isnan,    types={"T": FLOATING})
# fmt: on


# ---------------------------------------------------------------------------------------------------- complex numbers


@array_kernel("ComplexAbs", attrs=("Tout",))
def _complex_abs(x: Array, *, Tout: DataType) -> Array:
    return np.abs(x).astype(Tout.numpy, copy=False)


@array_kernel("Angle", attrs=("Tout",))
def _angle(x: Array, *, Tout: DataType) -> Array:
    return np.angle(x).astype(Tout.numpy, copy=False)


@array_kernel("Real", attrs=("Tout",))
def _real(x: Array, *, Tout: DataType) -> Array:
    return x.real.astype(Tout.numpy)


@array_kernel("Imag", attrs=("Tout",))
def _imag(x: Array, *, Tout: DataType) -> Array:
    return x.imag.astype(Tout.numpy)


array_kernel("Conj", np.conj, types={"T": COMPLEX})
array_kernel("Conj", lambda x: x, types={"T": (as_data_type("variant"),)})
