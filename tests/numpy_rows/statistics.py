"""Rows of statistics."""

import numpy as np
from function_rows import ANY, CUBE, EMPTY, MATRIX, SCALAR, Row

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


POSITIVE = {"low": 1, "high": 10, "ulp": 8}
ROWS = [
    Row("mean", _along(np.mean), SHAPES, ANY + "E", differentiable=True, **POSITIVE),
    Row("var", _along(np.var), SHAPES, ANY, differentiable=True, of_largest=True, ulp=16),
    Row("var", _degrees(np.var), ((MATRIX,), (CUBE,)), ANY, differentiable=True, of_largest=True, ulp=16),
    Row("std", _along(np.std), SHAPES, ANY, differentiable=True, of_largest=True, ulp=16),
    Row("std", _degrees(np.std), ((MATRIX,), (CUBE,)), ANY, differentiable=True, of_largest=True, ulp=16),
]
