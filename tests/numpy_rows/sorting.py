"""Rows of sorts and searches."""

import numpy as np
from support.functions.function_rows import ANY, CUBE, EMPTY, MATRIX, NUMBERS, REALS, SCALAR, VECTOR, Row

SHAPES = ((MATRIX,), (CUBE,), (SCALAR,), (EMPTY,))
LINES = (((7,), (4, 3)), ((7,), ()), ((0,), (3,)), ((50,), (6,)))
RISING = np.array([-4.0, -1.5, 0.0, 0.0, 2.5, 7.0])


def distinct(rng, shape, dtype):
    """Numbers of which no two are equal: unstable sorts have no choice."""
    size = int(np.prod(shape))
    made = (rng.permutation(size) - size // 2 * (dtype.kind != "u")).reshape(shape)
    return (made * (0.5 + 1j) if dtype.kind == "c" else made).astype(dtype)


def _parted(x, k):
    return np.sort(x[:k]), x[k], np.sort(x[k + 1 :])


ROWS = [
    Row("sort", [
        lambda x: np.sort(x), lambda x: np.sort(x, axis=0), lambda x: np.sort(x, None),
        lambda x: np.sort(x, kind="stable", axis=1), lambda x: np.sort(x, axis=-1, stable=True),
    ], SHAPES, ANY, ulp=0, special=True),
    Row("sort", [lambda x: np.sort(x), lambda x: np.sort(x, 0)], ((VECTOR,), (MATRIX,)), NUMBERS, ulp=0,
        differentiable=True, platforms=("interpreter", "cpu")),
    Row("argsort", [
        lambda x: np.argsort(x), lambda x: np.argsort(x, axis=0), lambda x: x.argsort(None),
        lambda x: np.argsort(-x, axis=-1, kind="mergesort"),
    ], SHAPES, NUMBERS, make=distinct, ulp=0),
    Row("argsort", [
        lambda x: np.argsort(x, kind="stable"), lambda x: np.argsort(x, axis=0, stable=True),
    ], SHAPES, ANY, low=-2, high=2, special=True, ulp=0),
    Row("partition", [lambda x: _parted(np.partition(x, 3), 3), lambda x: np.partition(x, (1, -2), axis=0)[[1, -2]]],
        ((VECTOR,), ((4,),)), ANY, ulp=0, special=True, differentiable=True),
    Row("partition", [lambda x: np.partition(x, 4, axis=None)[4], lambda x: np.partition(x, 9)], ((MATRIX,),), ANY,
        ulp=0),
    Row("partition", [lambda x: np.partition(x, 7), lambda x: np.argpartition(x, 7)], ((EMPTY[::-1],), (EMPTY,)), "d"),
    Row("argpartition", [lambda x: x[np.argpartition(x, 3)][3]], ((VECTOR,),), ANY, ulp=0, special=True),
    Row("lexsort", [lambda x, y: np.lexsort((x, y)), lambda x, y: np.lexsort((x, y), axis=0)],
        ((MATRIX, MATRIX), ((20,), (20,)), (EMPTY, EMPTY)), ANY, low=-2, high=2, special=True),
    Row("lexsort", [lambda x: np.lexsort(x)], (((2, 30),), ((3, 2, 4),)), ANY, low=-2, high=2),
    Row("sort_complex", [lambda x: np.sort_complex(x)], ((VECTOR,), (MATRIX,)), NUMBERS, ulp=0, special=True),
    Row("searchsorted", [
        lambda x, v: np.searchsorted(np.sort(x), v), lambda x, v: np.searchsorted(np.sort(x), v, side="right"),
        lambda x, v: np.searchsorted(x, v, sorter=np.argsort(x)), lambda x, v: np.sort(x).searchsorted(v[..., None]),
    ], LINES, ANY, special=True, low=-5, high=5),
    Row("searchsorted", [lambda x: np.searchsorted(RISING, x), lambda x: np.searchsorted(RISING, x, "right")],
        ((MATRIX,), (SCALAR,), (EMPTY,)), NUMBERS, special=True, low=-5, high=5),
    Row("digitize", [
        lambda x: np.digitize(x, RISING), lambda x: np.digitize(x, RISING, right=True),
        lambda x: np.digitize(x, RISING[::-1]), lambda x: np.digitize(x, np.sort(x.ravel())[::-1], right=True),
        lambda x: np.digitize(x, np.sort(x.ravel())), lambda x: np.digitize(x, RISING * (-1) ** np.arange(6)),
        lambda x: np.digitize(x, [-1, 2, np.nan]),
    ], ((MATRIX,), (SCALAR,), (EMPTY,)), REALS, low=-5, high=5, special=True),
    Row("searchsorted", [
        lambda x: np.searchsorted(RISING, x, side=0), lambda x: np.digitize(x, RISING + 1j),
        lambda x: np.lexsort((x[0, 0], x[0, 1]), axis=1), lambda x: np.lexsort((x[0, 0],), axis=-1),
    ], ((MATRIX,),), "d"),
]  # fmt: skip
