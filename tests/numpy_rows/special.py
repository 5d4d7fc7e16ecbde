"""Rows of `scipy.special`."""

import numpy as np
import scipy.special as special
from function_rows import EMPTY, MATRIX, SCALAR, Row

from cyxla.numpy.special import log_softmax, logsumexp, polygamma, softmax

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
    one("gamma", low=-9, special=True, ulp=1e4),
    one("gammaln", low=0.2, ulp=256, of_largest=True, differentiable=True),
    one("loggamma", low=0.2, ulp=256, of_largest=True),
    one("rgamma", low=0.2, ulp=64, differentiable=True),
    one("gammasgn", special=True),
    one("psi", low=0.2, ulp=256, of_largest=True, differentiable=True),
    one("digamma", low=0.2, ulp=256, of_largest=True),
    Row("special.zeta", [lambda x: special.zeta(x), lambda x: special.zeta(x, 2.5)], ONE, "fd", low=1.2, ulp=64),
    Row("special.zeta", [lambda x: special.zeta(x)], ONE, "d", low=-3, high=0.9, ulp=1e4, of_largest=True),
    Row("special.polygamma", [lambda x: polygamma(1, x), lambda x: polygamma(3, x)], ONE, "d", low=0.2, ulp=256,
        differentiable=True),
    Row("special.zeta", [lambda x: special.zeta(1.7, x), lambda x: special.zeta([1.5, 2, 3, 4], x)], ((MATRIX,),), "fd",
        low=0.2, ulp=64, differentiable=True),
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
    *(two(name, ulp=1e5, differentiable=True) for name in ("gammainc", "gammaincc", "chdtr", "chdtrc")),
    *(two(name, ulp=1e5) for name in ("pdtr", "pdtrc")),
    two("gdtr", ((MATRIX, MATRIX, MATRIX),), ulp=1e5),
    two("gdtrc", ((MATRIX, MATRIX, MATRIX),), ulp=1e5),
    *(two(name, ((MATRIX, MATRIX, MATRIX),), **BELOW_ONE, ulp=1e4) for name in ("betainc", "betaincc")),
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
