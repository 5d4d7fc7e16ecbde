"""Rows of take, put, where and similar functions."""

import numpy as np
from support.functions.function_rows import ANY, CUBE, EMPTY, INTEGERS, MATRIX, NUMBERS, SCALAR, VECTOR, Row

LIST = np.array([[2, 0], [-1, 1]])
WILD = np.array([7, -9, 1, 0, 2])
MASK = np.array([[True, False, True, True], [False, False, True, False], [True, True, False, False]])


def written(function):
    """Return a function that writes to its first argument and returns it."""

    def call(x, *rest):
        function(x, *rest)
        return x

    return call


def small(rng, shape, dtype):
    """Return indices of an axis of size 4, or numbers."""
    if dtype.kind in "iu":
        return rng.integers(0, 4, shape).astype(dtype)
    return rng.uniform(-9, 9, shape).astype(dtype)


def ordered(x):
    """Return indices along the last axis, computed from the data."""
    return np.argsort(x.real, axis=-1)


ROWS = [
    Row(
        "take",
        [
            lambda x: np.take(x, LIST),
            lambda x: np.take(x, LIST, axis=0),
            lambda x: np.take(x, 1, axis=-1),
            lambda x: np.take(x, WILD, axis=-1, mode="wrap"),
            lambda x: np.take(x, WILD, mode="clip"),
            lambda x: np.take(x, [], axis=0),
            lambda x: x.take(np.array([0, 2, 2], np.int8), 0),
        ],
        ((MATRIX,), (CUBE,)),
        ANY,
        differentiable=True,
    ),
    Row(
        "take",
        [lambda x, i: np.take(x, i, 0, mode="wrap"), lambda x, i: np.take(x, i, mode="clip")],
        ((MATRIX, (3, 2)), (VECTOR, SCALAR)),
        "bilHL",
        make=small,
        platforms=("interpreter", "cpu"),
    ),
    Row(
        "take",
        [lambda x: np.take(x, [0, 0, 0])],
        ((SCALAR,), (VECTOR,)),
        NUMBERS,
    ),
    Row(
        "take_along_axis",
        [
            lambda x: np.take_along_axis(x, np.argsort(x, axis=-1), -1),
            lambda x: np.take_along_axis(x, np.argmax(x, 0, keepdims=True), 0),
            lambda x: np.take_along_axis(x, np.array([3, 1, 1]), None),
        ],
        ((MATRIX,), (CUBE,)),
        differentiable=True,
        platforms=("interpreter", "cpu"),
    ),
    Row(
        "put_along_axis",
        [
            written(lambda x: np.put_along_axis(x, np.argmax(x, axis=-1, keepdims=True), 9, -1)),
            written(lambda x: np.put_along_axis(x, np.array([3, 1, 1]), [7, 8, 9], None)),
            written(lambda x: np.put_along_axis(x, np.argsort(x, axis=0), x * 2, 0)),
        ],
        ((MATRIX,), (CUBE,)),
        "bilfd",
    ),
    Row(
        "put",
        [
            written(lambda x: np.put(x, [0, 2, -1, 2], [1, 2, 3])),
            written(lambda x: x.put(WILD, 5, mode="wrap")),
            written(lambda x: np.put(x, WILD, np.arange(9), mode="clip")),
            written(lambda x: np.put(x, [], 5)),
            written(lambda x: np.put(x[:, ::2], [0, 1], x[0])),
        ],
        ((MATRIX,),),
    ),
    Row(
        "place",
        [
            written(lambda x: np.place(x, MASK, [1, 2, 3])),
            written(lambda x: np.place(x, x > 0, 7)),
            written(lambda x: np.place(x, x > 2, x[0] + 0)),
            written(lambda x: np.place(x, MASK, np.arange(50, dtype=np.int8))),
        ],
        ((MATRIX,),),
        "bilfd",
    ),
    Row(
        "putmask",
        [
            written(lambda x: np.putmask(x, MASK, [1, 2, 3])),
            written(lambda x: np.putmask(x, x > 0, 7)),
            written(lambda x: np.putmask(x, x > 2, x[::-1])),
        ],
        ((MATRIX,),),
        "bilfd",
        differentiable=True,
    ),
    Row(
        "choose",
        [
            lambda k, x: np.choose(k % 3, [x, 1.5, x + 1]),
            lambda k, x: np.choose(k, (x, x, x * 2), mode="wrap"),
            lambda k, x: np.choose(k, [x] * 12, mode="clip"),
            lambda k, x: (k % 2).choose([x, 0]),
        ],
        ((MATRIX, MATRIX), (SCALAR, VECTOR), (EMPTY, EMPTY)),
        "bil",
        make=small,
    ),
    Row(
        "compress",
        [
            lambda x: np.compress([True, False, True], x, axis=0),
            lambda x: np.compress([False, True], x),
            lambda x: x.compress([0, 1, 1], axis=-1),
            lambda x: np.compress([], x, 0),
        ],
        ((MATRIX,), (*CUBE[1:], 3)),
        ANY,
        differentiable=True,
    ),
    Row(
        "extract", [lambda x: np.extract(MASK, x), lambda x: np.extract(x > 0, x).sum()], ((MATRIX,),), NUMBERS, ulp=40
    ),
    Row(
        "where",
        [
            lambda x, y: np.where(x > y, x, y),
            lambda x, y: np.where(x, y, 1),
            lambda x, y: np.where(y > 0, 2, 1.5),
            lambda x, y: np.where(x != 0, x, np.float32(3)),
            lambda x, y: np.where([True], x, 1j),
        ],
        ((MATRIX, MATRIX), (CUBE, MATRIX[1:]), (SCALAR, VECTOR), (EMPTY, EMPTY)),
        NUMBERS,
        special=True,
        differentiable=True,
    ),
    Row(
        "ravel_multi_index",
        [
            lambda x, y: np.ravel_multi_index((x, y), (4, 5)),
            lambda x, y: np.ravel_multi_index((x, y), (4, 4), order="F"),
            lambda x, y: np.ravel_multi_index((x, y), (2, 3), mode="wrap"),
            lambda x, y: np.ravel_multi_index([x, y, 1], (3, 3, 2), mode=("clip", "wrap", "raise")),
        ],
        ((MATRIX, MATRIX), (SCALAR, VECTOR), (EMPTY, EMPTY)),
        "?" + INTEGERS,
        make=small,
    ),
    Row(
        "unravel_index",
        [
            lambda x: np.unravel_index(x, (4, 5)),
            lambda x: np.unravel_index(x, (2, 2, 3), order="F"),
            lambda x: np.unravel_index(x, 7),
        ],
        ((MATRIX,), (SCALAR,), (EMPTY,)),
        "?" + INTEGERS,
        make=small,
    ),
]
