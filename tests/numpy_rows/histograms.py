"""Rows of histograms and counts."""

import numpy as np
from support.functions.function_rows import FLOATS, INTEGERS, MATRIX, REALS, SCALAR, Row

EDGES = np.array([-6.0, -2.0, 0.0, 0.0, 1.5, 5.0])
MANY = (60,)


def places(rng, shape, dtype):
    """Return numbers from 0 to 9."""
    return rng.integers(0, 10, shape).astype(dtype)


ROWS = [
    Row("bincount", [
        lambda x: np.bincount(x, minlength=12), lambda x: np.bincount(x, np.sqrt(x), minlength=10),
        lambda x: np.bincount(np.arange(x.size) % 5, x),
        lambda x: np.bincount(x - 3, minlength=12) if x.dtype.kind != "u" else 0,
    ], ((MANY,), ((0,),), (MATRIX,)), "bhilBHI" + FLOATS, make=places),
    Row("histogram", [
        lambda x: np.histogram(x), lambda x: np.histogram(x, 7, (-4, 5)), lambda x: np.histogram(x, EDGES),
        lambda x: np.histogram(x, bins=40, range=(-20.0, 20.0), density=True),
        lambda x: np.histogram(x, np.sort(x.ravel())), lambda x: np.histogram(x, 5, (3, 3)),
        lambda x: np.histogram(x, 5, (3, 2)), lambda x: np.histogram(x, EDGES[::-1]), lambda x: np.histogram(x, 0),
    ], ((MANY,), (MATRIX,)), REALS, ulp=8, of_largest=True),
    *(Row("histogram", [lambda x: np.histogram(x, EDGES.astype(np.int64), weights=x * 2, density=True)],
          ((MANY,), (MATRIX,)), letters, ulp=ulp, of_largest=True)
      for letters, ulp in ((INTEGERS + "d", 8), ("e", 2.0**45), ("f", 2.0**32))),  # sums in the dtype of weights
    Row("histogram", [lambda x: np.histogram(x), lambda x: np.histogram(x, EDGES, density=True)], (((0,),), (SCALAR,)),
        REALS),
    Row("histogram", [lambda x: np.histogram(x, 4, (-5, 5)), lambda x: np.histogram(x)], ((MANY,),), FLOATS,
        special=True),
    Row("histogram_bin_edges", [
        lambda x: np.histogram_bin_edges(x, 5), lambda x: np.histogram_bin_edges(x, range=(0, 3)),
        lambda x: np.histogram_bin_edges(x, EDGES),
    ], ((MANY,), (MATRIX,)), INTEGERS + FLOATS, ulp=8, of_largest=True),
    Row("histogram2d", [
        lambda x, y: np.histogram2d(x, y), lambda x, y: np.histogram2d(x, y, bins=[4, EDGES]),
        lambda x, y: np.histogram2d(x, y, EDGES, weights=x, density=True),
        lambda x, y: np.histogram2d(x, y, 3, range=[[-4, 4], [0, 9]], density=True),
    ], ((MANY, MANY),), REALS, ulp=16),
    Row("histogramdd", [
        lambda x: np.histogramdd(x, 3), lambda x: np.histogramdd(x, (2, 3, EDGES), density=True),
        lambda x: np.histogramdd(x.T[:2].T, range=[(-5, 5), (-9, 9)]), lambda x: np.histogramdd((x[:, 0], x[:, 1]), 2),
    ], (((20, 3),),), FLOATS, ulp=16),
    Row("histogram", [
        lambda x: np.histogram(x, 4, (2.5, 20)), lambda x: np.histogram(x, []), lambda x: np.histogram(x, [2]),
        lambda x: np.histogram(x, EDGES, weights=x > 1), lambda x: np.histogram(x, 3, weights=x > 1),
    ], (((20,),),), "ef", ulp=8),
    Row("bincount", [lambda x: np.bincount(x, minlength=9.5), lambda x: np.bincount(x, minlength=10)], (((9,),),), "L",
        make=places),
]  # fmt: skip
