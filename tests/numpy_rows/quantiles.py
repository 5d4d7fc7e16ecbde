"""Rows of medians and quantiles."""

import numpy as np
from support.functions.function_rows import ANY, CUBE, EMPTY, FLOATS, INTEGERS, MATRIX, REALS, SCALAR, Row

SHAPES = ((MATRIX,), (CUBE,), (SCALAR,), (EMPTY,))
METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
    "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
)  # fmt: skip
PARTS = np.array([0, 0.2, 0.5, 0.75, 1.0])


def with_nan(rng, shape, dtype):
    """Return numbers with nan; some columns are all nan, but not the first, which determines NumPy's dtype."""
    made = rng.uniform(-10, 10, shape).astype(dtype)
    if dtype.kind != "f" or not shape:
        return made
    made = np.where(rng.random(shape) < 0.3, dtype.type(np.nan), made)
    made[..., -1] = np.nan
    made[..., :1] = rng.uniform(1, 2, made[..., :1].shape)
    return made


def _middles(function):
    return [
        lambda x: function(x),
        lambda x: function(x, axis=-1, keepdims=True),
        lambda x: function(x, axis=(0, -1)) if x.ndim > 1 else function(x, axis=0),
        lambda x: function(x, axis=0),
    ]


def _parts(function, scale=1):
    return [
        lambda x: function(x, 0.3 * scale),
        lambda x: function(x, PARTS * scale, axis=-1, keepdims=True),
        lambda x: function(x, 1, axis=0),
        lambda x: function(x, PARTS[1:3].astype(np.float32) * np.float32(scale), axis=0),
        lambda x: function(x, np.array([[0.1, 0.9]]) * scale, axis=0, method="lower"),
    ]


def _methods(function):
    return [lambda x, m=m: function(x, PARTS, axis=-1, method=m) for m in METHODS]


def _traced(function):
    return [lambda x, q, m=m: function(x, np.abs(q), axis=-1, method=m) for m in METHODS]


ROWS = [
    Row("median", _middles(np.median), SHAPES, ANY, special=True, ulp=2),
    Row("median", _middles(np.median), ((MATRIX,), (CUBE,)), ANY, ulp=2, differentiable=True),
    Row("nanmedian", _middles(np.nanmedian), SHAPES, REALS, make=with_nan, differentiable=True, ulp=2),
    Row("quantile", _parts(np.quantile), SHAPES, REALS, low=1, high=10, ulp=4, differentiable=True),
    Row("quantile", _methods(np.quantile), ((MATRIX,), ((7,),)), FLOATS + INTEGERS, low=1, high=10,
        differentiable=True, ulp=4),
    Row("quantile", _traced(np.quantile), ((MATRIX, (3,)), ((7,), ())), FLOATS, low=0, high=1, ulp=32,
        of_largest=True),
    Row("quantile", [lambda x, q: np.quantile(x, q)], ((MATRIX, (3,)),), FLOATS, low=-2, high=2),
    Row("quantile", [lambda x: np.quantile(x, 0.5, method="none"), lambda x: np.quantile(x, 2)], ((MATRIX,),), FLOATS),
    Row("quantile", [lambda x: np.quantile(x, np.ones((0, 3))), lambda x: np.percentile(x, np.ones((3, 0)), axis=0)],
        ((MATRIX,), ((0,),)), "ld"),
    Row("quantile", [lambda x: np.quantile(x, []), lambda x: np.median(x, axis=[0])], ((MATRIX,), ((7,),)), "ld"),
    Row("percentile", _parts(np.percentile, 100), SHAPES, REALS, low=1, high=10, ulp=4,
        differentiable=True, special=True),
    Row("nanquantile", _parts(np.nanquantile), SHAPES, REALS, make=with_nan, ulp=32, of_largest=True),
    Row("nanquantile", _methods(np.nanquantile), ((MATRIX,), ((7,),)), FLOATS, make=with_nan, ulp=32, of_largest=True),
    Row("nanpercentile", _parts(np.nanpercentile, 100), SHAPES, REALS, make=with_nan, ulp=32, of_largest=True),
    Row("quantile", [
        lambda x: np.quantile(x, PARTS, weights=np.abs(x), method="inverted_cdf"),
        lambda x: np.quantile(x, 0.4, axis=1, weights=np.array([0, 1, 2, 0.5]), method="inverted_cdf", keepdims=True),
        lambda x: np.percentile(x, [10, 80], axis=0, weights=np.array([3, 1, 2]), method="inverted_cdf"),
        lambda x: np.quantile(x, 0.4, weights=-np.abs(x), method="inverted_cdf"),
        lambda x: np.quantile(x, 0.4, weights=x * 0, method="inverted_cdf"),
        lambda x: np.quantile(x, 0.4, weights=x),
    ], ((MATRIX,),), FLOATS + INTEGERS, low=1, high=10, ulp=0, special=True),
    Row("nanquantile", [
        lambda x: np.nanquantile(x, PARTS, weights=np.arange(12).reshape(3, 4), method="inverted_cdf"),
        lambda x: np.nanpercentile(x, 30, axis=1, weights=np.ones((3, 4), int), method="inverted_cdf"),
    ], ((MATRIX,),), FLOATS, make=with_nan, ulp=0),
    Row("quantile", [
        lambda x: np.quantile(x, np.array([0, 1]), method="averaged_inverted_cdf"),
        lambda x: np.nanquantile(x, np.array([0, 1]), method="hazen"), lambda x: np.quantile(x, np.array([0, 1])),
        lambda x: np.quantile(x[:, :0], x[0, :2] * 0, axis=0),
    ], ((MATRIX,),), "ef", low=1),
]  # fmt: skip
