"""Special functions, by SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.types import FLOATING
from cyxla.core.kernels.lib.elementwise import Array, binary, unary
from cyxla.core.kernels.lib.gamma_derivatives import igamma_grad_a
from cyxla.errors import ShapeError

_WIDE = FLOATING[2:]


def _scipy(name: str, *, in_double: bool = False) -> Any:
    """Wrap a function of scipy.special, which is imported at the first call."""

    def function(*operands: Array) -> Array:
        import scipy.special

        wide = [x.astype(np.float64) for x in operands] if in_double else operands
        return np.asarray(getattr(scipy.special, name)(*wide))

    return function


def _lgamma(x: Array) -> Array:
    """Return log |gamma(x)|, infinite at the poles and at both infinities."""
    return np.where(np.isinf(x), np.inf, _scipy("gammaln")(x))


def _polygamma(n: Array, x: Array) -> Array:
    """Return the n-th derivative of the digamma function; NaN unless n is a nonnegative integer."""
    import scipy.special

    n, x = np.broadcast_arrays(n.astype(np.float64), x.astype(np.float64))
    result = np.where(n == 0, scipy.special.digamma(x), 0.0)
    higher = n > 0
    result = np.where(higher, (-1.0) ** (n + 1) * scipy.special.gamma(n + 1) * _zeta(n + 1, x), result)
    return np.where((n >= 0) & (n == np.floor(n)), result, np.nan)


def _zeta(x: Array, q: Array) -> Array:
    """Return the Hurwitz zeta function; NaN for x < 1, and for q <= 0 where the power is undefined."""
    import scipy.special

    x, q = np.broadcast_arrays(x.astype(np.float64), q.astype(np.float64))
    below = q <= 0
    is_pole = below & (q == np.floor(q))
    # For q <= 0 the first terms are added one by one, which needs an integer exponent.
    steps = np.where(below, np.floor(-q) + 1, 0)
    result = scipy.special.zeta(x, np.where(below, q + steps, q))
    for k in range(int(min(steps.max(initial=0), 1e6))):
        result = result + np.where(k < steps, np.where(below, (q + k), 1.0) ** -x, 0)
    result = np.where(is_pole, np.inf, result)
    result = np.where(below & ~is_pole & (x != np.floor(x)), np.nan, result)
    return np.where(x < 1, np.nan, np.where(x == 1, np.inf, result))


# fmt: off
unary("Lgamma",    _lgamma,              FLOATING)
unary("Digamma",   _scipy("digamma"),    FLOATING)
unary("Erfinv",    _scipy("erfinv"),     FLOATING)
unary("Ndtri",     _scipy("ndtri"),      FLOATING)
unary("BesselI0",  _scipy("i0"),         FLOATING)
unary("BesselI0e", _scipy("i0e"),        FLOATING)
unary("BesselI1",  _scipy("i1"),         FLOATING)
unary("BesselI1e", _scipy("i1e"),        FLOATING)
binary("Igamma",   _scipy("gammainc"),   FLOATING)
binary("Igammac",  _scipy("gammaincc"),  FLOATING)
binary("Polygamma", _polygamma,          _WIDE)
binary("Zeta",     _zeta,                _WIDE)
binary("IgammaGradA", igamma_grad_a, _WIDE)
# fmt: on


@array_kernel("Betainc", types={"T": _WIDE})
def _betainc(a: Array, b: Array, x: Array) -> Array:
    """Return the regularised incomplete beta function of operands of one shape or scalars."""
    import scipy.special

    shapes = {operand.shape for operand in (a, b, x) if operand.ndim}
    if len(shapes) > 1:
        raise ShapeError(
            f"a {list(a.shape)}, b {list(b.shape)} and x {list(x.shape)} must have one shape or be scalars"
        )
    return np.asarray(scipy.special.betainc(a, b, x)).astype(a.dtype, copy=False)
