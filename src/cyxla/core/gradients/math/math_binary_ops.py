"""Gradients of element-wise functions of two broadcasting tensors."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor, binary_gradient, conj


def _where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return apply_op("SelectV2", condition, x, y)


def _zeros(x: Tensor) -> Tensor:
    return apply_op("ZerosLike", x)


def _nonzero(x: Tensor) -> Tensor:
    """Return 1 where x is nonzero, else 0, in x's type."""
    return apply_op("Cast", apply_op("NotEqual", x, 0.0), DstT=x.dtype.base)


def _log_where_positive(x: Tensor) -> Tensor:
    """Return log(x) where x is positive, or nonzero if complex; else 0."""
    defined = apply_op("NotEqual", x, 0.0) if x.dtype.base.numpy.kind == "c" else x > 0.0
    return _where(defined, apply_op("Log", _where(defined, x, apply_op("OnesLike", x))), _zeros(x))


def _pow(x: Tensor, y: Tensor, z: Tensor, dz: Tensor) -> Any:
    x, y, z = conj(x), conj(y), conj(z)
    return dz * y * apply_op("Pow", x, y - 1.0), dz * z * _log_where_positive(x)


def _selected_by(comparison: str) -> Any:
    """Make the rule that passes the gradient to x where a comparison holds, else to y."""

    def rule(x: Tensor, y: Tensor, z: Tensor, dz: Tensor) -> Any:
        condition, zeros = apply_op(comparison, x, y), _zeros(dz)
        return _where(condition, dz, zeros), _where(condition, zeros, dz)

    return rule


def _squared_difference(x: Tensor, y: Tensor, z: Tensor, dz: Tensor) -> Any:
    dx = (x - y) * (dz + conj(dz))  # the result is real: only the real part of its gradient counts
    return dx, -dx


def _atan2(y: Tensor, x: Tensor, z: Tensor, dz: Tensor) -> Any:
    scale = dz / (apply_op("Square", x) + apply_op("Square", y))
    return x * scale, -y * scale


def _floor_mod(x: Tensor, y: Tensor, z: Tensor, dz: Tensor) -> Any:
    return dz, -dz * apply_op("FloorDiv", x, y)


def _truncated_mod(x: Tensor, y: Tensor, z: Tensor, dz: Tensor) -> Any:
    return dz, -dz * ((x - z) / y)


# fmt: off
binary_gradient(("Add", "AddV2"),     lambda x, y, z, dz: (dz, dz))
binary_gradient("Sub",                lambda x, y, z, dz: (dz, -dz))
binary_gradient("Mul",                lambda x, y, z, dz: (dz * conj(y), dz * conj(x)))
binary_gradient("MulNoNan",           lambda x, y, z, dz: (
    apply_op("MulNoNan", dz, conj(y)), apply_op("MulNoNan", conj(x), dz)))
binary_gradient(("Div", "RealDiv"),   lambda x, y, z, dz: (dz / conj(y), dz * (-conj(x) / conj(y) / conj(y))))
binary_gradient("DivNoNan",           lambda x, y, z, dz: (
    apply_op("DivNoNan", dz, conj(y)), dz * apply_op("DivNoNan", apply_op("DivNoNan", -conj(x), conj(y)), conj(y))))
binary_gradient("Pow",                _pow)
binary_gradient("Maximum",            _selected_by("GreaterEqual"))
binary_gradient("Minimum",            _selected_by("LessEqual"))
binary_gradient("SquaredDifference",  _squared_difference)
binary_gradient("Atan2",              _atan2)
binary_gradient("FloorMod",           _floor_mod)
binary_gradient(("Mod", "TruncateMod"), _truncated_mod)
binary_gradient("Xlogy",              lambda x, y, z, dz: (
    dz * apply_op("Xlogy", _nonzero(x), conj(y)), dz * apply_op("Xdivy", conj(x), conj(y))))
binary_gradient("Xlog1py",            lambda x, y, z, dz: (
    dz * apply_op("Xlog1py", _nonzero(x), conj(y)), dz * apply_op("Xdivy", conj(x), conj(y) + 1.0)))
binary_gradient("Xdivy",              lambda x, y, z, dz: (
    dz * apply_op("Xdivy", _nonzero(x), conj(y)), dz * apply_op("Xdivy", -conj(x), apply_op("Square", conj(y)))))
binary_gradient("Complex",            lambda x, y, z, dz: (
    apply_op("Real", dz, Tout=x.dtype), apply_op("Imag", dz, Tout=x.dtype)))
binary_gradient("NextAfter",          lambda x, y, z, dz: (dz, _zeros(dz)))
# fmt: on


# Gradients of fused gradients z = f'(x) dy, in terms of the conjugate of y = f(x).
@gradient("SigmoidGrad")
def sigmoid_grad_grad(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
    """Differentiate y (1 - y) dy."""
    y, dy = conj(op.inputs[0]), op.inputs[1]
    return conj(dz) * dy * (1.0 - y * 2.0), apply_op("SigmoidGrad", y, dz)


@gradient("TanhGrad")
def tanh_grad_grad(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
    """Differentiate (1 - y y) dy."""
    y, dy = conj(op.inputs[0]), op.inputs[1]
    return conj(dz) * dy * (y * -2.0), apply_op("TanhGrad", y, dz)


@gradient("SqrtGrad")
def sqrt_grad_grad(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
    """Differentiate dy / (2 y)."""
    y = op.inputs[0]
    return -conj(dz) * op.outputs[0] / conj(y), dz / y * 0.5


@gradient("RsqrtGrad")
def rsqrt_grad_grad(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
    """Differentiate -y y y dy / 2."""
    y, dy = conj(op.inputs[0]), op.inputs[1]
    return conj(dz) * dy * (apply_op("Square", y) * -1.5), apply_op("RsqrtGrad", y, dz)


@gradient("ReciprocalGrad")
def reciprocal_grad_grad(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
    """Differentiate -y y dy."""
    y, dy = conj(op.inputs[0]), op.inputs[1]
    return conj(dz) * dy * (y * -2.0), apply_op("ReciprocalGrad", y, dz)


@gradient("FloorDiv", "TruncateDiv")
def piecewise_constant_grad(op: Any, dz: Tensor) -> tuple[None, None]:
    """Return no gradients: the function is piecewise constant."""
    return None, None


no_gradient(
    "ApproximateEqual", "Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "LogicalAnd", "LogicalOr", "NotEqual"
)
