"""The gamma function to nearly full precision: a Chebyshev series between 2 and 3, Stirling's formula from 20 on."""

from __future__ import annotations

from math import pi, sqrt
from typing import Final

import numpy as np

from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.special import chebyshev, const, lgamma
from cyxla.xla.lib.values import select

#: Chebyshev coefficients of gamma(x) from 2 to 3.
_GAMMA: Final = (
    1.4137822420244522503, 0.49172848008900725144, 0.085324541706096062244, 0.0082145581546736827502,
    0.00088792780946907819481, 0.000056765679151886103409, 5.264076190531451981e-6, 1.961278484873876499e-7,
    2.4254659199649361269e-8, -4.3405843998465366347e-11, 1.2813542241531117434e-10, -7.1851587447352931633e-12,
    9.8788621680806277046e-13, -8.9352489423854234752e-14, 9.472673359391568792e-15, -9.4266860102336654348e-16,
    9.5910098907511792413e-17, -9.6779580424107034701e-18,
)  # fmt: skip
#: Chebyshev coefficients of gamma(x) / (sqrt(2 pi) x^(x - 1/2) exp(-x)) in 20 / x, from 0 to 1.
_STIRLING: Final = (
    1.0020864834706049975, 0.0020875159753799361585, 1.0219696826660149167e-6, -1.0541977007820835069e-8,
    -6.4047470991015382481e-12, 4.7978791811776727552e-13, -2.5588605002754899705e-16, -5.5562857045362075091e-17,
)  # fmt: skip
#: Chebyshev coefficients of log(gamma(x)) / ((x - 1) (x - 2)) from 0.8 to 2.6.
_LOG_GAMMA: Final = (
    0.47843064016139264, -0.12535698179030118, 0.023288791179142933, -0.0049860193295293001, 0.0011499225666688886,
    -0.00027728808271543915, 6.8840222609144108e-5, -1.7441267901247856e-5, 4.4853334361331692e-6,
    -1.1667363986409651e-6, 3.0625265646582468e-7, -8.098156304396664e-8, 2.1545520687743288e-8,
    -5.7622030760749655e-9, 1.5479877764902617e-9, -4.1748903358839421e-10, 1.1298469491935455e-10,
    -3.0670796704282486e-11, 8.3487704782602549e-12, -2.2782137449221874e-12, 6.2307503323826064e-13,
    -1.7075497818161002e-13, 4.6883284227453923e-14, -1.2894608157415608e-14, 3.5521019504032327e-15,
    -9.7993699746932602e-16, 2.7070750989886976e-16, -7.4877385700272318e-17, 2.0735391900595352e-17,
)  # fmt: skip
_STIRLING_MIN: Final = 20
_MAX_ARGUMENT: Final = 171.7  # beyond it gamma(x) overflows


def sinpi(x: XlaOp) -> XlaOp:
    """Return ``sin(pi x)``, exact at integers."""
    near = xla.round_nearest_even(x)
    odd = xla.ne(near * const(x, 0.5), xla.floor(near * const(x, 0.5)))
    sine = xla.sine(const(x, pi) * (x - near))
    return select(odd, -sine, sine)


def _near(x: XlaOp) -> XlaOp:
    """Return gamma(x) for 0 < x < 20, by the recurrence from its value between 2 and 3."""
    one = const(x, 1)
    whole = xla.floor(x)
    found = chebyshev((x - whole) * const(x, 2) - one, _GAMMA)
    for k in range(1, _STIRLING_MIN - 2):
        found = found * select(xla.ge(whole, const(x, k + 2)), x - const(x, k), one)
    found = select(xla.lt(whole, const(x, 2)), found / x, found)
    return select(xla.lt(whole, one), found / (x + one), found)


def _far(x: XlaOp) -> XlaOp:
    """Return gamma(x) for x >= 20, by Stirling's formula."""
    clamped = xla.minimum(xla.maximum(x, const(x, _STIRLING_MIN)), const(x, _MAX_ARGUMENT))
    root = xla.power(clamped, clamped * const(x, 0.5) - const(x, 0.25))
    series = chebyshev(const(x, 2 * _STIRLING_MIN) / clamped - const(x, 1), _STIRLING)
    return const(x, sqrt(2 * pi)) * series * (root * xla.exponential(-clamped)) * root


def gamma(x: XlaOp) -> XlaOp:
    """Return the gamma function; infinite at zeros, nan at negative integers."""
    size = xla.abs_(x)
    near = xla.lt(size, const(x, _STIRLING_MIN))
    found = select(near, _near(select(near, size, const(x, 1))), _far(size))
    found = select(xla.gt(size, const(x, _MAX_ARGUMENT)), const(x, np.inf), found)
    sine = sinpi(size)
    mirrored = -const(x, pi) / (size * sine * found)
    mirrored = select(xla.eq(sine, const(x, 0)), const(x, np.nan), mirrored)
    found = select(xla.lt(x, const(x, 0)), mirrored, found)
    found = select(xla.eq(x, const(x, 0)), const(x, 1) / x, found)
    return select(xla.eq(size, const(x, np.inf)), select(xla.gt(x, const(x, 0)), x, const(x, np.nan)), found)


def log_gamma(x: XlaOp) -> XlaOp:
    """Return log |gamma(x)|, with full relative precision near its zeros at 1 and 2."""
    near = xla.and_(xla.gt(x, const(x, 0.8)), xla.lt(x, const(x, 2.6)))
    clamped = select(near, x, const(x, 1.5))
    series = chebyshev((clamped - const(x, 1.7)) * const(x, 1 / 0.9), _LOG_GAMMA)
    return select(near, (clamped - const(x, 1)) * (clamped - const(x, 2)) * series, lgamma(x))
