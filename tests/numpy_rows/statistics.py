"""Rows of statistics."""

import numpy as np
from support.functions.function_rows import ANY, COMPLEX, CUBE, EMPTY, FLOATS, MATRIX, NUMBERS, SCALAR, Row

SHAPES = ((MATRIX,), (CUBE,), (SCALAR,), (EMPTY,))
MASK = np.array([[True, False, True, True]])


def _along(function):
    return [
        lambda x: function(x),
        lambda x: function(x, axis=-1, keepdims=True),
        lambda x: function(x, axis=(0, -1)) if x.ndim > 1 else function(x, axis=0),
        lambda x: function(x, 0, np.float64),
        lambda x: function(x, axis=-1, where=MASK),
    ]


def _degrees(function):
    return [
        lambda x: function(x, ddof=1),
        lambda x: function(x, axis=0, correction=1),
        lambda x: function(x, axis=0, mean=np.mean(x, axis=0, keepdims=True)),
        lambda x: function(x, ddof=3, axis=0),
    ]


def with_nan(rng, shape, dtype):
    """Numbers, in every third line or so one that is nan."""
    made = rng.uniform(1, 10, shape).astype(dtype)
    return np.where(rng.random(shape) < 0.2, dtype.type(np.nan), made) if dtype.kind in "fc" else made


def _types(function):
    """Sums in other types than the array's, and kept in other arrays: NumPy casts between its steps."""
    return [
        lambda x: function(x, dtype=np.int16),
        lambda x: function(x, axis=0, dtype=np.float16 if x.dtype.kind != "c" else np.complex64),
        lambda x: function(x, axis=0, keepdims=True, dtype=np.complex128, where=MASK),
        lambda x: function(x, axis=-1, out=np.zeros(x.shape[:-1], np.float32)),
        lambda x: function(x, axis=1, dtype=bool),
    ]


POSITIVE = {"low": 1, "high": 10, "ulp": 8}
ROWS = [
    Row("mean", _along(np.mean), SHAPES, ANY + "E", differentiable=True, **POSITIVE),
    Row("var", _along(np.var), SHAPES, ANY, differentiable=True, of_largest=True, ulp=16),
    Row("var", _degrees(np.var), ((MATRIX,), (CUBE,)), ANY, differentiable=True, of_largest=True, ulp=16),
    Row("std", _along(np.std), SHAPES, ANY, differentiable=True, of_largest=True, ulp=16),
    Row("std", _degrees(np.std), ((MATRIX,), (CUBE,)), ANY, differentiable=True, of_largest=True, ulp=16),
    Row("nanmean", _along(np.nanmean), SHAPES, ANY, special=True, differentiable=True, **POSITIVE),
    Row("nanvar", _along(np.nanvar), SHAPES, ANY, make=with_nan, differentiable=True, of_largest=True, ulp=16),
    Row("nanvar", _degrees(np.nanvar), ((MATRIX,), (CUBE,)), ANY, make=with_nan,
        differentiable=True, of_largest=True, ulp=16),
    Row("nanstd", _along(np.nanstd), SHAPES, ANY, make=with_nan, differentiable=True, of_largest=True, ulp=16),
    Row("nanstd", _degrees(np.nanstd), ((MATRIX,), (CUBE,)), ANY, make=with_nan,
        differentiable=True, of_largest=True, ulp=16),
    *(Row(f.__name__, _types(f), ((MATRIX,),), "?bHlefdFD", make=make, of_largest=True, ulp=1024)
      for f, make in ((np.mean, None), (np.std, None), (np.nanvar, with_nan))),
    Row("var", [lambda x: np.var(x * 100), lambda x: np.nanvar(x * 100), lambda x: np.nanmean(x * 6000)],
        (((60,),),), "e", low=1, high=10, ulp=4),
    Row("mean", [lambda x: np.mean(x, axis=0, where=True), lambda x: np.var(x, axis=-1, where=x > 0),
                 lambda x: np.std(x, axis=0)], ((SCALAR,),), "?hd"),
    Row("average", [
        lambda x: np.average(x), lambda x: np.average(x, 0, returned=True), lambda x: np.average(x, -1, keepdims=True),
        lambda x: np.average(x, 1, weights=np.array([1, 2, 3, 4.0], np.float32)),
        lambda x: np.average(x, weights=np.abs(x), returned=True),
        lambda x: np.average(x, axis=0, weights=np.zeros(x.shape, int)),
    ], ((MATRIX,), (SCALAR,)), ANY, differentiable=True, **POSITIVE),
    Row("average", [lambda x, w: np.average(x, axis=(2, 0), weights=w)], ((CUBE, (4, 2)),), NUMBERS, **POSITIVE),
    Row("cov", [
        lambda x: np.cov(x), lambda x: np.cov(x, bias=True), lambda x: np.cov(x, rowvar=False, ddof=0),
        lambda x: np.cov(x, x[::-1] * 2), lambda x: np.cov(x, dtype=np.float32 if x.dtype.kind != "c" else None),
        lambda x: np.cov(x, fweights=np.array([1, 2, 1, 3])), lambda x: np.cov(x, fweights=np.array([1, -2, 1, 3])),
        lambda x: np.cov(x, fweights=np.array([1, 2, 1, 3]), aweights=np.array([0.5, 1, 2, 3])),
    ], ((MATRIX,), ((4,),)), NUMBERS, of_largest=True, ulp=32, differentiable=True),
    Row("cov", [lambda x: np.cov(x), lambda x: np.corrcoef(x)], ((EMPTY,),), NUMBERS),
    Row("cov", [lambda x, y: np.cov(x, y), lambda x, y: np.corrcoef(x, y), lambda x, y: np.cov(x, y, rowvar=False)],
        (((0, 3), (3,)), ((0, 3), (2, 3)), ((1, 3), (1, 3)), ((3, 2), (1, 3)), ((3, 1), (3, 2)), ((3,), (1, 3))),
        NUMBERS, ulp=32),
    Row("corrcoef", [
        lambda x: np.corrcoef(x), lambda x: np.corrcoef(x, rowvar=False),
        lambda x: np.corrcoef(x, np.exp(-np.arange(x.shape[-1]))),
    ], ((MATRIX,), ((6,),)), FLOATS + COMPLEX, of_largest=True, ulp=32, differentiable=True),
]  # fmt: skip
