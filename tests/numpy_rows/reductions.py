"""Rows of reductions."""

import numpy as np
from support.functions.function_rows import (
    ANY,
    COMPLEX,
    CUBE,
    EMPTY,
    FLOATS,
    MATRIX,
    NUMBERS,
    REALS,
    SCALAR,
    VECTOR,
    Row,
)

SHAPES = ((MATRIX,), (CUBE,), (SCALAR,), (EMPTY,))
LINES = ((VECTOR,), (MATRIX,), (EMPTY,), (SCALAR,))
MASK = np.array([[True, False, True, True]])


def _joins(function, **more):
    return [
        lambda x: function(x),
        lambda x: function(x, axis=-1, keepdims=True) if x.ndim else function(x, axis=0),
        lambda x: function(x, axis=(0, -1)) if x.ndim > 1 else function(x, axis=-1),
        lambda x: function(x, keepdims=True, axis=0),
    ]


def _masked(function, initial):
    return [
        lambda x: function(x, axis=1, where=MASK, initial=initial),
        lambda x: function(x, initial=initial),
        lambda x: function(x, axis=0, out=np.zeros_like(x, shape=x.shape[1:])),
    ]


def _places(function):
    return [
        lambda x: function(x),
        lambda x: function(x, axis=-1, keepdims=True),
        lambda x: function(x, 0),
        lambda x: function(x, keepdims=True),
    ]


def _running(function):
    return [
        lambda x: function(x),
        lambda x: function(x, axis=-1),
        lambda x: function(x, 0, np.float64),
        lambda x: function(x, axis=0, out=np.zeros_like(x, dtype=np.float32)) if x.ndim else function(x, 0),
    ]


def _running_in_array_api(function):
    return [
        lambda x: function(x),
        lambda x: function(x, axis=0, include_initial=True),
        lambda x: function(x, axis=-1, dtype=np.float64),
    ]


BOTH = ("interpreter", "cpu")
ALL_NAN = np.array([np.nan, np.nan])


def _begun(function):
    """Return initial values of other dtypes than the elements, which NumPy stores in arrays of the result's dtype."""
    return [
        lambda x: function(x, initial=2.75),
        lambda x: function(x, axis=0, initial=np.nan),
        lambda x: function(x, axis=0, initial=np.inf, where=MASK[:, :3].T),
        lambda x: function(x, initial=1j),
        lambda x: function(x, initial=300),
        lambda x: function(x, initial=None, where=x > 2),
        lambda x: function(x[:0], initial=None),
        lambda x: function(x, initial=x[0, 0], axis=(0, 1), keepdims=True),
    ]


POSITIVE = {"low": 1, "high": 10, "ulp": 4}
ROWS = [
    Row("sum", _joins(np.sum), SHAPES, ANY + "E", differentiable=True, **POSITIVE),
    Row("sum", _masked(np.sum, 2), ((MATRIX,),), NUMBERS, **POSITIVE),
    Row("sum", [lambda x: x.sum(dtype=np.float64), lambda x: x.sum(0, np.int16)], SHAPES, "bdifL", **POSITIVE),
    Row("prod", _joins(np.prod), SHAPES, ANY, low=1, high=2, ulp=32, differentiable=True),
    Row("prod", _masked(np.prod, 2), ((MATRIX,),), NUMBERS, ulp=16, low=1, high=3),
    Row("max", _joins(np.max), SHAPES, ANY + "E", differentiable=True, special=True, ulp=0),
    Row("max", _masked(np.max, 2), ((MATRIX,),), NUMBERS, differentiable=True, special=True, ulp=0),
    Row("amax", [lambda x: np.amax(x)], SHAPES, ANY, differentiable=True, ulp=0),
    Row("min", _joins(np.min), SHAPES, ANY + "E", differentiable=True, special=True, ulp=0),
    Row("min", _masked(np.min, 2), ((MATRIX,),), NUMBERS, differentiable=True, special=True, ulp=0),
    Row("amin", [lambda x: np.amin(x)], SHAPES, ANY, differentiable=True, ulp=0),
    Row("any", [*_joins(np.any), lambda x: np.any(x, where=x > 1)], SHAPES, ANY, low=0, high=2, special=True),
    Row("all", [*_joins(np.all), lambda x: np.all(x, where=x > 1)], SHAPES, ANY, low=0, high=2, special=True),
    Row("argmax", _places(np.argmax), SHAPES, ANY + "E", special=True),
    Row("argmin", _places(np.argmin), SHAPES, ANY + "E", special=True),
    Row("ptp", _joins(np.ptp), SHAPES, NUMBERS, ulp=1, differentiable=True),
    Row(
        "count_nonzero",
        [
            lambda x: np.count_nonzero(x),
            lambda x: np.count_nonzero(x, axis=0),
            lambda x: np.count_nonzero(x, keepdims=True),
        ],
        SHAPES, ANY, low=-2, high=2, special=True,
    ),
    Row("cumsum", _running(np.cumsum), SHAPES, ANY, differentiable=True, **POSITIVE),
    Row("cumprod", _running(np.cumprod), SHAPES, ANY, low=1, high=2, ulp=32, differentiable=True),
    Row("cumprod", _running(np.cumprod)[:1], ((VECTOR,), (MATRIX,)), COMPLEX, low=1, high=2, ulp=64, platforms=BOTH),
    Row("sum", _joins(np.sum)[:3], ((MATRIX,), (CUBE,)), "?he" + COMPLEX, platforms=BOTH, **POSITIVE),
    Row("max", _joins(np.max)[:3], ((MATRIX,),), "?HeD", platforms=BOTH, special=True, ulp=0),
    Row("argmin", _places(np.argmin)[:2], ((MATRIX,),), "?eF", platforms=BOTH, special=True),
    Row("cumulative_sum", _running_in_array_api(np.cumulative_sum), LINES, ANY, differentiable=True, **POSITIVE),
    Row("cumulative_prod", _running_in_array_api(np.cumulative_prod), LINES, NUMBERS, low=1, high=2,
        differentiable=True, ulp=32),
    Row("nansum", _joins(np.nansum), SHAPES, ANY, special=True, differentiable=True, **POSITIVE),
    Row("nansum", _masked(np.nansum, 2), ((MATRIX,),), NUMBERS, special=True, differentiable=True, **POSITIVE),
    Row("nanprod", _joins(np.nanprod), SHAPES, REALS, low=1, high=2, ulp=32, differentiable=True, special=True),
    Row("nanmax", _joins(np.nanmax), SHAPES, ANY, differentiable=True, special=True, ulp=0),
    Row("nanmax", _masked(np.nanmax, 2), ((MATRIX,),), NUMBERS, differentiable=True, special=True, ulp=0),
    Row("nanmax", [lambda x: np.nanmax(x * ALL_NAN, axis=-1)], (((3, 2),),), FLOATS, differentiable=True, ulp=0),
    Row("nanmin", _joins(np.nanmin), SHAPES, ANY, differentiable=True, special=True, ulp=0),
    Row("nanmin", _masked(np.nanmin, 2), ((MATRIX,),), NUMBERS, differentiable=True, special=True, ulp=0),
    Row("nanargmax", _places(np.nanargmax), SHAPES, ANY, special=True),
    Row("nanargmax", [lambda x: np.nanargmax(x * ALL_NAN, axis=-1)], (((3, 2),),), FLOATS),
    Row("nanargmin", _places(np.nanargmin), SHAPES, ANY, special=True),
    Row("nancumsum", _running(np.nancumsum), SHAPES, ANY, special=True, differentiable=True, **POSITIVE),
    Row("nancumprod", _running(np.nancumprod), SHAPES, REALS, low=1, high=2, ulp=32, differentiable=True, special=True),
    *(Row(f.__name__, _begun(f), ((MATRIX,),), "?bHlefdFD", low=1, high=3, ulp=32)
      for f in (np.sum, np.nanmin)),
    *(Row(f.__name__, [lambda x, f=f: f(x, axis=0), lambda x, f=f: f(x, axis=-1)], (((0, 0),),), "ld")
      for f in (np.max, np.nanmin, np.argmax)),
    *(Row(f.__name__, [lambda x, f=f: f(x, 0, out=np.zeros(4, "i4")), lambda x, f=f: f(x, 0, out=np.zeros(4, "f4")),
                       lambda x, f=f: f(x, (0, 1))], ((MATRIX,),), "lf") for f in (np.argmin, np.nanargmax)),
    Row("ptp", [lambda x: np.ptp(x, 0, np.zeros(4, "f4")), lambda x: np.ptp(x, 0, np.zeros(4, "i2"))],
        ((MATRIX,),), "bfd"),
    Row("bitwise_or", [lambda x: np.bitwise_or.reduce(x, dtype=np.int16), lambda x: np.bitwise_or.reduce(x),
                       lambda x: np.logical_or.reduce(x, dtype=np.int16)], ((MATRIX,),), "ld"),
    Row("cumsum", [lambda x: np.cumsum(x, axis=(0,)), lambda x: np.cumulative_prod(x, axis=(0,)),
                   lambda x: np.cumulative_sum(x, axis=(0, 0))], ((SCALAR,), (MATRIX,)), "l"),
]  # fmt: skip
