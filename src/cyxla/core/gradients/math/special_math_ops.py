"""Gradients of special functions."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.gradients.common import Tensor, binary_gradient, unary_gradient, unbroadcast


def _exp(x: Tensor) -> Tensor:
    return apply_op("Exp", x)


def _ones(x: Tensor) -> Tensor:
    return apply_op("OnesLike", x)


def _div_no_nan(x: Tensor, y: Tensor) -> Tensor:
    return apply_op("DivNoNan", x, y)


def _bessel_i1(x: Tensor, y: Tensor, dy: Tensor) -> Tensor:
    ratio = apply_op("SelectV2", apply_op("Equal", x, 0.0), _ones(x) * 0.5, _div_no_nan(y, x))
    return dy * (apply_op("BesselI0", x) - ratio)


def _bessel_i1e(x: Tensor, y: Tensor, dy: Tensor) -> Tensor:
    derivative = apply_op("BesselI0e", x) - y * (apply_op("Sign", x) + _div_no_nan(_ones(x), x))
    return dy * apply_op("SelectV2", apply_op("Equal", x, 0.0), _ones(x) * 0.5, derivative)


def _gamma_density(a: Tensor, x: Tensor) -> Tensor:
    """Return the derivative of Igamma with respect to x: exp(-x) x^(a - 1) / gamma(a)."""
    return _exp(apply_op("Xlogy", a - 1.0, x) - x - apply_op("Lgamma", a))


# fmt: off
unary_gradient("Lgamma",     lambda x, y, dy: dy * apply_op("Digamma", x))
unary_gradient("Digamma",    lambda x, y, dy: dy * apply_op("Polygamma", _ones(x), x))
unary_gradient("Erfinv",     lambda x, y, dy: dy * (sqrt(pi) / 2) * _exp(apply_op("Square", y)))
unary_gradient("Ndtri",      lambda x, y, dy: dy * sqrt(2 * pi) * _exp(apply_op("Square", y) * 0.5))
unary_gradient("BesselI0",   lambda x, y, dy: dy * apply_op("BesselI1", x))
unary_gradient("BesselI0e",  lambda x, y, dy: dy * (apply_op("BesselI1e", x) - apply_op("Sign", x) * y))
unary_gradient("BesselI1",   _bessel_i1)
unary_gradient("BesselI1e",  _bessel_i1e)
binary_gradient("Igamma",    lambda a, x, z, dz: (dz * apply_op("IgammaGradA", a, x), dz * _gamma_density(a, x)))
binary_gradient("Igammac",   lambda a, x, z, dz: (-dz * apply_op("IgammaGradA", a, x), -dz * _gamma_density(a, x)))
binary_gradient("Zeta",      lambda x, q, z, dz: (None, dz * -x * apply_op("Zeta", x + 1.0, q)))
binary_gradient("Polygamma", lambda n, x, z, dz: (None, dz * apply_op("Polygamma", n + 1.0, x)))
# fmt: on


@gradient("Betainc")
def betainc_grad(op: Any, dz: Tensor) -> tuple[None, None, Tensor]:
    """Differentiate with respect to x only: the other derivatives have no closed form."""
    a, b, x = op.inputs
    log_beta = apply_op("Lgamma", a) + apply_op("Lgamma", b) - apply_op("Lgamma", a + b)
    density = _exp(apply_op("Xlog1py", b - 1.0, -x) + apply_op("Xlogy", a - 1.0, x) - log_beta)
    return None, None, unbroadcast(x, op.outputs[0], dz * density, None)[0]
