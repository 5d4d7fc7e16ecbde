"""Rows of polynomials."""

import numpy as np
from support.functions.function_rows import MATRIX, NUMBERS, SCALAR, Row

TWO = (((4,), (2,)), ((2,), (4,)), ((3,), (3,)))


def _sorted(rng, shape, dtype):
    return np.cumsum(rng.uniform(0.3, 1, shape), axis=-1).astype(dtype)


ROWS = [
    Row(
        "polyval",
        [
            lambda p, x: np.polyval(p, x),
            lambda p, x: np.polyval([1, 2, 3], x),
            lambda p, x: np.polyval(p, 2),
        ],
        (((4,), MATRIX), ((3,), SCALAR)),
        NUMBERS,
        ulp=64,
        of_largest=True,
        low=-3,
        high=3,
        differentiable=True,
    ),
    Row(
        "polyadd",
        [lambda x, y: np.polyadd(x, y), lambda x, y: np.polyadd(x, [1, 2])],
        TWO,
        NUMBERS,
        differentiable=True,
    ),
    Row("polysub", [lambda x, y: np.polysub(x, y)], TWO, NUMBERS, differentiable=True),
    Row("polymul", [lambda x, y: np.polymul(x, y)], TWO, NUMBERS, low=1, ulp=64, of_largest=True, differentiable=True),
    Row(
        "polymul",
        [lambda x: np.polymul(x, [0, 0, 1, 2]), lambda x: np.polymul([0.0], x), lambda x: np.polymul(x, [[1], [2]])],
        (((3,),), ((1,),)),
        "lfD",
        low=1,
    ),
    Row("polyder", [lambda x: np.polyder(x), lambda x: np.polyder(x, 2)], (((5,),),), NUMBERS, differentiable=True),
    Row(
        "polyint",
        [
            lambda x: np.polyint(x),
            lambda x: np.polyint(x, 2),
            lambda x: np.polyint(x, 2, k=[1, 2]),
            lambda x: np.polyint(x, 2, 3),
        ],
        (((5,),),),
        NUMBERS,
        differentiable=True,
    ),
    Row(
        "polyfit",
        [
            lambda x, y: np.polyfit(x, y, 2),
            lambda x, y: np.polyfit(x, y, 1, w=np.arange(1.0, 9)),
            lambda x, y: np.polyfit(x, np.stack([y, y * y], 1), 2),
            lambda x, y: np.polyfit(x, y, 1, cov=True),
            lambda x, y: np.polyfit(x, y, 2, cov="unscaled"),
        ],
        (((8,), (8,)),),
        "d",
        make=_sorted,
        ulp=1e6,
        of_largest=True,
    ),
    Row("poly", [lambda x: np.poly(x)], (((4,),),), "lfd", ulp=64, of_largest=True, differentiable=True),
    Row("roots", [lambda x: np.sort(np.roots(x).astype(complex))], (((4,),),), "ld", low=1, ulp=1e6, of_largest=True),
    Row(
        "polynomial.polynomial.polyval",
        [lambda x: np.polynomial.polynomial.polyval(x, [1.0, 2.0, 3.0])],
        ((MATRIX,),),
        "lfd",
        ulp=64,
        of_largest=True,
    ),
]
