"""Rows of functions that create arrays."""

import numpy as np
from support.functions.function_rows import ANY, EMPTY, MATRIX, REALS, SCALAR, Row

ALL = ((MATRIX,), (SCALAR,), (EMPTY,))
PAIRS = ((SCALAR, SCALAR), ((3,), (3,)), (SCALAR, (2, 2)))


def _filled(x):
    y = np.empty_like(x)
    y[...] = x
    return y


def _copied(x):
    y = np.zeros_like(x)
    np.copyto(y, x)
    np.copyto(y, 1, where=x > 2)
    return y


ROWS = [
    Row(
        "zeros_like",
        [
            lambda x: np.zeros_like(x),
            lambda x: np.zeros_like(x, dtype=np.int8),
            lambda x: np.zeros_like(x, shape=(2, 2)),
        ],
        ALL,
        ANY,
    ),
    Row("ones_like", [lambda x: np.ones_like(x), lambda x: np.ones_like(x, dtype=float, shape=3)], ALL, ANY),
    Row("empty_like", [lambda x: _filled(x)], ALL, ANY),
    Row(
        "full_like",
        [
            lambda x: np.full_like(x, 3),
            lambda x: np.full_like(x, 2.5, dtype=np.float32),
            lambda x: np.full_like(x, x.sum(), shape=(4,)),
            lambda x: np.full_like(x, 300),
            lambda x: np.full_like(x, -1),
            lambda x: np.full_like(x, np.pi, dtype=complex),
        ],
        ((MATRIX,),),
        ANY,
    ),
    Row(
        "copy",
        [lambda x: np.copy(x), lambda x: x.copy(), lambda x: np.copy(x.T, order="F")],
        ALL,
        ANY,
        differentiable=True,
    ),
    Row(
        "full",
        [
            lambda x: np.full(x.shape, x),
            lambda x: np.full((2, *x.shape), x, np.float32),
            lambda x: np.full(3, x.sum()),
            lambda x: np.full(x.shape, 2) + x,
            lambda x: np.full(fill_value=x.max(initial=1), shape=(2, 0), order="F"),
        ],
        ALL,
        REALS,
    ),
    Row("copyto", [lambda x: _copied(x)], ALL, REALS),
    Row(
        "linspace",
        [
            lambda x, y: np.linspace(x, y, 5),
            lambda x, y: np.linspace(x, y, 4, endpoint=False),
            lambda x, y: np.linspace(x, 10, 3, retstep=True),
            lambda x, y: np.linspace(0, y, 6, axis=-1),
            lambda x, y: np.linspace(x, y, 1),
            lambda x, y: np.linspace(x, y, 7, dtype=int),
            lambda x, y: np.linspace(x, y, 0),
            lambda x, y: np.linspace(x, y, 1, retstep=True),
        ],
        PAIRS,
        "fdilFD",
        of_largest=True,
        differentiable=True,
    ),
    Row(
        "logspace",
        [
            lambda x, y: np.logspace(x, y, 5),
            lambda x, y: np.logspace(x, 3, 4, base=2, endpoint=False),
            lambda x, y: np.logspace(x, y, 3, base=[2, 3, 4], axis=-1),
            lambda x, y: np.logspace(x, y, 3, dtype=np.float32),
        ],
        PAIRS,
        "dil",
        low=-2,
        high=3,
        ulp=32,
        differentiable=True,
    ),
    Row(
        "geomspace",
        [
            lambda x, y: np.geomspace(x, y, 5),
            lambda x, y: np.geomspace(x, y, 4, endpoint=False, axis=-1),
            lambda x, y: np.geomspace(-x, -y, 3),
            lambda x, y: np.geomspace(x, y, 3, dtype=np.float32),
        ],
        PAIRS,
        "dil",
        low=1,
        high=20,
        ulp=64,
        differentiable=True,
    ),
    Row("geomspace", [lambda x, y: np.geomspace(1, y.astype(np.float32), 2)], PAIRS, "dil", low=1, high=20, ulp=64),
    Row(
        "astype",
        [lambda x: np.astype(x, np.float32), lambda x: x.astype(complex), lambda x: x.astype(bool)],
        ALL,
        REALS,
    ),
    Row(
        "array",
        [
            lambda x: np.array(x),
            lambda x: np.array([x, x]),
            lambda x: np.array(x, ndmin=3),
            lambda x: np.array(x, np.int16),
        ],
        ALL,
        REALS,
    ),
    Row(
        "asarray",
        [lambda x: np.asarray(x), lambda x: np.asarray(x, dtype=complex), lambda x: np.asanyarray([[x], [x]])],
        ALL,
        REALS,
    ),
    Row(
        "ascontiguousarray",
        [lambda x: np.ascontiguousarray(x.T), lambda x: np.ascontiguousarray(x, np.float32)],
        ALL,
        REALS,
    ),
    Row("asfortranarray", [lambda x: np.asfortranarray(x.T), lambda x: np.require(x, requirements="C")], ALL, REALS),
]
