"""Rows of `scipy.special`."""

import numpy as np
import scipy.special as special
from support.functions.function_rows import EMPTY, MATRIX, SCALAR, Row

from cyxla.numpy.functions.scipy_special import log_softmax, logsumexp, polygamma, softmax

ONE = ((MATRIX,), (SCALAR,), (EMPTY,))
TWO = ((MATRIX, MATRIX), (SCALAR, (4,)))
BELOW_ONE = {"low": 0.05, "high": 0.95}


def one(name, **facts):
    """A ufunc of one number."""
    function = getattr(special, name)
    return Row(f"special.{name}", [lambda x: function(x)], ONE, **{"dtypes": "lefd", "ulp": 16, **facts})


def two(name, shapes=TWO, **facts):
    """A ufunc of several numbers."""
    function = getattr(special, name)
    return Row(
        f"special.{name}", [lambda *x: function(*x)], shapes, **{"dtypes": "fd", "low": 0.2, "ulp": 256, **facts}
    )


EDGES = (12, 12)
AT_EDGES = "cosdg exprel gamma gammasgn log_ndtr ndtri psi rgamma sindg softplus tandg zeta erfcx"
PAIRS_AT_EDGES = {
    "boxcox inv_boxcox rel_entr kl_div xlogy xlog1py": 8,
    "pseudo_huber": 32,
    "gammainc gammaincc chdtr": 1024,  # where the answer is 1e-250, SciPy's own comes from exp of a sum near -590
}


def _edges(rng, shape, dtype):
    """Poles, zeros of both signs, what is not finite, huge and tiny numbers."""
    numbers = [0.0, -0.0, 1.0, 2.0, 0.5, -0.5, -3.0, 30.5, 170.0, np.inf, -np.inf, np.nan, 1e15, 1e-12]
    return rng.choice(numbers, shape).astype(dtype)


def either(name, ours):
    """SciPy's function for NumPy's arrays, ours for traced ones."""
    return lambda x, **options: (getattr(special, name) if isinstance(x, np.ndarray) else ours)(x, **options)


ROWS = [
    one("erf", special=True, differentiable=True),
    one("erfc", low=-3, high=3, differentiable=True),
    one("erfcx", low=-2, high=9, ulp=64, differentiable=True),
    one("erfinv", **BELOW_ONE, differentiable=True),
    one("erfcinv", **BELOW_ONE, differentiable=True),
    one("ndtr", low=-3, high=3, ulp=64, special=True, differentiable=True),
    one("ndtri", **BELOW_ONE, ulp=64, differentiable=True),
    one("log_ndtr", low=-9, high=3, ulp=64, differentiable=True),
    one("expit", special=True, differentiable=True, ulp=64),
    one("logit", **BELOW_ONE, differentiable=True),
    one("log_expit", special=True, differentiable=True),
    one("entr", low=0.1, differentiable=True),
    one("entr", special=True),
    one("exprel", special=True, ulp=64, differentiable=True),
    one("exp10", low=-3, high=3, ulp=32, differentiable=True),
    *(one(name, low=0.2, differentiable=True) for name in ("cbrt", "exp2", "expm1", "log1p")),
    one("cosm1"),
    *(one(name, low=-80, high=80, ulp=64) for name in ("sindg", "cosdg", "tandg")),
    *(one(name, ulp=32, differentiable=True) for name in ("i0", "i0e", "i1", "i1e")),
    one("gamma", low=0.2, ulp=64, differentiable=True),
    one("gamma", low=-9, special=True, ulp=64),
    one("gammaln", low=0.2, ulp=256, of_largest=True, differentiable=True),
    one("loggamma", low=0.2, ulp=256, of_largest=True),
    one("rgamma", low=0.2, ulp=64, differentiable=True),
    one("gammasgn", special=True),
    one("psi", low=0.2, ulp=256, of_largest=True, differentiable=True),
    one("digamma", low=0.2, ulp=256, of_largest=True),
    Row("special.zeta", [lambda x: special.zeta(x), lambda x: special.zeta(x, 2.5)], ONE, "fd", low=1.2, ulp=64),
    Row("special.zeta", [lambda x: special.zeta(x)], ONE, "d", low=-80, high=0.9, ulp=256),
    Row(
        "special.polygamma",
        [lambda x: polygamma(1, x), lambda x: polygamma(3, x)],
        ONE,
        "d",
        low=0.2,
        ulp=256,
        differentiable=True,
    ),
    Row(
        "special.zeta",
        [lambda x: special.zeta(1.7, x), lambda x: special.zeta([1.5, 2, 3, 4], x)],
        ((MATRIX,),),
        "fd",
        low=0.2,
        ulp=64,
        differentiable=True,
    ),
    *(two(name, differentiable=True) for name in ("beta", "xlogy", "xlog1py", "rel_entr")),
    two("betaln", of_largest=True, differentiable=True),
    Row(
        "special.betaln",
        [lambda x: special.betaln(x, 1.5), lambda x: special.beta(2.0, x)],
        ((MATRIX,),),
        "d",
        low=1e8,
        high=1e15,
        ulp=256,
    ),
    two("kl_div", of_largest=True, differentiable=True),
    *(two(name, special=True) for name in ("xlogy", "xlog1py", "rel_entr", "huber")),
    two("pseudo_huber", differentiable=True),
    *(two(name, high=3, differentiable=True) for name in ("boxcox", "boxcox1p", "inv_boxcox", "inv_boxcox1p")),
    two("powm1", high=3, ulp=64),
    two("binom", ulp=256),
    *(two(name, ulp=128, differentiable=True) for name in ("gammainc", "gammaincc", "chdtr", "chdtrc")),
    *(two(name, ulp=128) for name in ("pdtr", "pdtrc")),
    two("gdtr", ((MATRIX, MATRIX, MATRIX),), ulp=512),
    two("gdtrc", ((MATRIX, MATRIX, MATRIX),), ulp=512),
    *(two(name, ((MATRIX, MATRIX, MATRIX),), **BELOW_ONE, ulp=64) for name in ("betainc", "betaincc")),
    Row(
        "special.gammaincc",
        [
            lambda x: [special.gammainc(x, 0.9 * x), special.gammaincc(x, 1.1 * x), special.gammaincc(1e-9, 1 / x)],
            lambda x: [special.betainc(x, 150.0, x / (x + 160)), special.betaincc(x, 30.0, x / (x + 25))],
            lambda x: [special.psi(1.46 + x / 1e4), special.rel_entr(x, x + 0.01), special.zeta(-x)],
        ],
        ((MATRIX,),),
        "d",
        low=40,
        high=150,
        ulp=2048,
    ),
    *(one(name, make=_edges, dtypes="d", ulp=64) for name in AT_EDGES.split()),
    *(
        two(name, ((EDGES, EDGES),), make=_edges, dtypes="d", ulp=ulp)
        for names, ulp in PAIRS_AT_EDGES.items()
        for name in names.split()
    ),
    Row(
        "special.betainc",
        [lambda x: special.betainc(2.5, 1.5, x), lambda x: special.betaincc(0.5, 3.0, x)],
        ONE,
        "d",
        **BELOW_ONE,
        ulp=1e4,
        differentiable=True,
    ),
    one("softplus", special=True, differentiable=True),
    Row(
        "special.softmax",
        [lambda x: either("softmax", softmax)(x, axis=-1), lambda x: either("softmax", softmax)(x)],
        ((MATRIX,),),
        "fd",
        ulp=64,
        differentiable=True,
    ),
    Row(
        "special.log_softmax",
        [lambda x: either("log_softmax", log_softmax)(x, axis=0)],
        ((MATRIX,),),
        "fd",
        ulp=64,
        of_largest=True,
        differentiable=True,
    ),
    Row(
        "special.logsumexp",
        [
            lambda x: either("logsumexp", logsumexp)(x),
            lambda x: either("logsumexp", logsumexp)(x, axis=1, keepdims=True),
            lambda x: either("logsumexp", logsumexp)(x, axis=0, b=x - 1, return_sign=True),
        ],
        ((MATRIX,),),
        "fd",
        ulp=64,
        of_largest=True,
    ),
]
