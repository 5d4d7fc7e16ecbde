"""Rows of indexing, written as calls; numpy/test_indexing.py draws the rest."""

import numpy as np
from support.functions.function_rows import ANY, CUBE, MATRIX, NUMBERS, VECTOR, Row

INNER = np.array([2, 0, 1, 1])
SIGNS = np.array([[True, False, True, True], [False, False, True, False], [True, True, False, False]])


def written(key, value):
    """Return a function that assigns to elements of its argument and returns the argument."""

    def call(x):
        x[key] = value(x) if callable(value) else value
        return x

    return call


def changed(change):
    """Return a function that changes its argument and returns it."""

    def call(x):
        change(x)
        return x

    return call


def _stencil(x):
    x[1:-1] = x[1:-1] + (x[2:] - 2 * x[1:-1] + x[:-2]) // 2


def _through_views(x):
    row = x[1]
    row += 1
    x[0][2] = 5
    x.T[1] *= 2
    x[::2][1:] = row


def _masked(x):
    x[x > 3] = 3
    x[x < -3] *= -1


def _scaled(x):
    x[1:, ::2] *= 3
    x[..., -1] -= x[..., 0]


def _picked(x):
    x[[0, 2]] += x[[1]]
    x[np.array([0, 1]), np.array([[1], [2]])] = 7


ROWS = [
    Row(
        "ndarray.__getitem__",
        [
            lambda x: x[1],
            lambda x: x[-1, 2],
            lambda x: x[::-1, 1:3],
            lambda x: x[..., None, 0],
            lambda x: x[1:1],
            lambda x: x[::2, ::-2],
            lambda x: x[()],
            lambda x: x[True],
        ],
        ((MATRIX,), (CUBE,)),
        ANY,
        differentiable=True,
    ),
    Row(
        "ndarray.__getitem__",
        [
            lambda x: x[INNER],
            lambda x: x[:, INNER],
            lambda x: x[[0, 2], [1, 3]],
            lambda x: x[SIGNS],
            lambda x: x[INNER[:, None], :2],
            lambda x: x[np.argsort(x[:, 0].real)],
            lambda x: x[[]],
            lambda x: x[np.argmax(x.real, 0), np.arange(4)],
            lambda x: x[SIGNS[:, 0], 1],
            lambda x: x[None, 1, :, [0, 1]] if x.ndim > 2 else x,
        ],
        ((MATRIX,),),
        NUMBERS,
        differentiable=True,
    ),
    Row(
        "ndarray.__getitem__",
        [lambda x: x[:, [0, 2, 1], 1:3], lambda x: x[0, :, [0, 1]], lambda x: x[[1, 0], :, [0, 3]]],
        ((CUBE,),),
        NUMBERS,
        differentiable=True,
    ),
    Row(
        "ndarray.__setitem__",
        [
            written(1, 7),
            written((slice(None), -1), 2.5),
            written((slice(None, None, 2), slice(1, 3)), lambda x: x[0, :2]),
            written(slice(None, None, -1), lambda x: x),
            written((slice(1), slice(None, None, -3)), 0),
            written(..., 1),
            written((0, 0), lambda x: x[1, 1]),
            written(slice(2, 1), 5),
        ],
        ((MATRIX,),),
        ANY,
        differentiable=True,
    ),
    Row(
        "ndarray.__setitem__",
        [
            written(INNER, lambda x: x[:1] * 2),
            written((slice(None), INNER), lambda x: np.stack([x[:, 3]] * 4, -1)),
            written(SIGNS, 3),
            written(SIGNS, lambda x: x[:, :2].ravel()),
            written(([0, 0, 1], [1, 1, 2]), [1, 2, 3]),
            written((INNER[:2, None], slice(1, 3)), 4),
            written([], 5),
        ],
        ((MATRIX,),),
        NUMBERS,
    ),
    Row(
        "ndarray.__setitem__",
        [changed(f) for f in (_stencil, _through_views, _masked, _scaled, _picked)],
        ((MATRIX,),),
        "bld",
        platforms=("interpreter", "cpu"),
    ),
    Row(
        "ndarray.__getitem__",
        [
            lambda x: x[x > 0].sum(),
            lambda x: (x[x > -100].max(), x[x > -100].min()),
            lambda x: (x[x > 100] > 1).any(),
            lambda x: x[x > 0].sum(axis=0),
        ],
        ((MATRIX,), (VECTOR,)),
        "bilfd",
        ulp=40,
    ),
]
