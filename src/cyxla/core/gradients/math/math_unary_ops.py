"""Gradients of element-wise functions of one tensor.

For complex tensors the gradient of a real loss combines its derivatives by real and imaginary part, so derivatives of
functions enter conjugated.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.framework.types import COMPLEX
from cyxla.core.gradients.common import Tensor, conj, unary_gradient


def _op(name: str, x: Tensor) -> Tensor:
    return apply_op(name, x)


def _reciprocal(x: Tensor) -> Tensor:
    return apply_op("Reciprocal", x)


def _square(x: Tensor) -> Tensor:
    return apply_op("Square", x)


# fmt: off
unary_gradient("Neg",         lambda x, y, dy: -dy)
unary_gradient("Square",      lambda x, y, dy: dy * (conj(x) * 2.0))
unary_gradient("Exp",         lambda x, y, dy: dy * conj(y))
unary_gradient("Expm1",       lambda x, y, dy: dy * _op("Exp", conj(x)))
unary_gradient("Log",         lambda x, y, dy: dy * _reciprocal(conj(x)))
unary_gradient("Log1p",       lambda x, y, dy: dy * _reciprocal(conj(x) + 1.0))
unary_gradient("Sin",         lambda x, y, dy: dy * _op("Cos", conj(x)))
unary_gradient("Cos",         lambda x, y, dy: -dy * _op("Sin", conj(x)))
unary_gradient("Tan",         lambda x, y, dy: dy * _square(_reciprocal(_op("Cos", conj(x)))))
unary_gradient("Asin",        lambda x, y, dy: dy * _op("Rsqrt", 1.0 - _square(conj(x))))
unary_gradient("Acos",        lambda x, y, dy: -dy * _op("Rsqrt", 1.0 - _square(conj(x))))
unary_gradient("Atan",        lambda x, y, dy: dy * _reciprocal(1.0 + _square(conj(x))))
unary_gradient("Sinh",        lambda x, y, dy: dy * _op("Cosh", conj(x)))
unary_gradient("Cosh",        lambda x, y, dy: dy * _op("Sinh", conj(x)))
unary_gradient("Asinh",       lambda x, y, dy: dy / _op("Cosh", conj(y)))
unary_gradient("Acosh",       lambda x, y, dy: dy / _op("Sinh", conj(y)))
unary_gradient("Atanh",       lambda x, y, dy: dy * _reciprocal(1.0 - _square(conj(x))))
unary_gradient("Erf",         lambda x, y, dy: dy * (2 / sqrt(pi)) * _op("Exp", -_square(x)))
unary_gradient("Erfc",        lambda x, y, dy: dy * (-2 / sqrt(pi)) * _op("Exp", -_square(x)))
unary_gradient("Sqrt",        lambda x, y, dy: apply_op("SqrtGrad", y, dy))
unary_gradient("Rsqrt",       lambda x, y, dy: apply_op("RsqrtGrad", y, dy))
unary_gradient("Sigmoid",     lambda x, y, dy: apply_op("SigmoidGrad", y, dy))
unary_gradient("Tanh",        lambda x, y, dy: apply_op("TanhGrad", y, dy))
unary_gradient(("Inv", "Reciprocal"), lambda x, y, dy: apply_op("ReciprocalGrad", y, dy))
unary_gradient("Abs",         lambda x, y, dy: dy * _op("Sign", x))
unary_gradient("Conj",        lambda x, y, dy: conj(dy))
# fmt: on


@gradient("Real")
def real_grad(op: Any, dy: Tensor) -> Tensor:
    """Make a complex gradient with zero imaginary part."""
    return apply_op("Complex", dy, apply_op("ZerosLike", dy), Tout=op.attr("T"))


@gradient("Imag")
def imag_grad(op: Any, dy: Tensor) -> Tensor:
    """Make a complex gradient with zero real part."""
    return apply_op("Complex", apply_op("ZerosLike", dy), dy, Tout=op.attr("T"))


@gradient("ComplexAbs")
def complex_abs_grad(op: Any, dy: Tensor) -> Tensor:
    """Multiply by x / |x|; zero at 0."""
    x, y = op.inputs[0], op.outputs[0]
    scale = apply_op("DivNoNan", dy, y)
    return apply_op("Complex", scale, apply_op("ZerosLike", scale), Tout=op.attr("T")) * x


@gradient("Angle")
def angle_grad(op: Any, dy: Tensor) -> Tensor:
    """Multiply by i x / |x|^2."""
    x = op.inputs[0]
    if x.dtype.base not in COMPLEX:
        return apply_op("ZerosLike", x)
    real, imag = (apply_op(part, x, Tout=dy.dtype) for part in ("Real", "Imag"))
    scale = dy / (_square(real) + _square(imag))
    return apply_op("Complex", -imag * scale, real * scale, Tout=op.attr("T"))


@gradient("Sign")
def sign_grad(op: Any, dy: Tensor) -> Tensor:
    """Return zeros: the function is piecewise constant."""
    return apply_op("ZerosLike", op.inputs[0])


no_gradient("Ceil", "Floor", "Rint", "Round", "IsFinite", "IsInf", "IsNan", "LogicalNot")
