"""Gradients of functions of two tensors that are broadcast against each other."""

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
    """1 where x is not 0, as a number."""
    return apply_op("Cast", apply_op("NotEqual", x, 0.0), DstT=x.dtype.base)


def _log_where_positive(x: Tensor) -> Tensor:
    """The logarithm; 0 where there is none (for complex numbers only at 0)."""
    there = apply_op("NotEqual", x, 0.0) if x.dtype.base.numpy.kind == "c" else x > 0.0
    return _where(there, apply_op("Log", _where(there, x, apply_op("OnesLike", x))), _zeros(x))


def _pow(x: Tensor, y: Tensor, z: Tensor, dz: Tensor) -> Any:
    x, y, z = conj(x), conj(y), conj(z)
    return dz * y * apply_op("Pow", x, y - 1.0), dz * z * _log_where_positive(x)


def _chosen(comparison: str) -> Any:
    """All to x where it is chosen, else all to y."""

    def rule(x: Tensor, y: Tensor, z: Tensor, dz: Tensor) -> Any:
        chosen, nothing = apply_op(comparison, x, y), _zeros(dz)
        return _where(chosen, dz, nothing), _where(chosen, nothing, dz)

    return rule


def _squared_difference(x: Tensor, y: Tensor, z: Tensor, dz: Tensor) -> Any:
    dx = (x - y) * (dz + conj(dz))  # the result is real, so only the real part of its gradient counts
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
binary_gradient("Maximum",            _chosen("GreaterEqual"))
binary_gradient("Minimum",            _chosen("LessEqual"))
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


# Fused gradients are differentiated in turn: z = f'(x) dy, written with the conjugate of y = f(x).
@gradient("SigmoidGrad")
def sigmoid_grad_grad(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
    """Of y (1 - y) dy."""
    y, dy = conj(op.inputs[0]), op.inputs[1]
    return conj(dz) * dy * (1.0 - y * 2.0), apply_op("SigmoidGrad", y, dz)


@gradient("TanhGrad")
def tanh_grad_grad(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
    """Of (1 - y y) dy."""
    y, dy = conj(op.inputs[0]), op.inputs[1]
    return conj(dz) * dy * (y * -2.0), apply_op("TanhGrad", y, dz)


@gradient("SqrtGrad")
def sqrt_grad_grad(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
    """Of dy / (2 y)."""
    y = op.inputs[0]
    return -conj(dz) * op.outputs[0] / conj(y), dz / y * 0.5


@gradient("RsqrtGrad")
def rsqrt_grad_grad(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
    """Of -y y y dy / 2."""
    y, dy = conj(op.inputs[0]), op.inputs[1]
    return conj(dz) * dy * (apply_op("Square", y) * -1.5), apply_op("RsqrtGrad", y, dz)


@gradient("ReciprocalGrad")
def reciprocal_grad_grad(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
    """Of -y y dy."""
    y, dy = conj(op.inputs[0]), op.inputs[1]
    return conj(dz) * dy * (y * -2.0), apply_op("ReciprocalGrad", y, dz)


@gradient("FloorDiv", "TruncateDiv")
def no_slope(op: Any, dz: Tensor) -> tuple[None, None]:
    """A staircase."""
    return None, None


no_gradient(
    "ApproximateEqual", "Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "LogicalAnd", "LogicalOr", "NotEqual"
)
