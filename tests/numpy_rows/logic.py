"""Rows of comparisons of arrays and of predicates."""

import numpy as np
from support.functions.function_rows import ANY, MATRIX, NUMBERS, REALS, SCALAR, Row

PAIRS = ((MATRIX, MATRIX), (SCALAR, MATRIX))
CLOSE = [
    lambda x, y: np.isclose(x, y),
    lambda x, y: np.isclose(x, x * 1.000001),
    lambda x, y: np.isclose(x, 2),
    lambda x, y: np.isclose(x, y, rtol=0.5, atol=1, equal_nan=True),
    lambda x, y: np.isclose(1, y),
]

ROWS = [
    Row("isclose", CLOSE, PAIRS, NUMBERS, special=True),
    Row(
        "allclose",
        [
            lambda x, y: np.allclose(x, y),
            lambda x, y: np.allclose(x, x),
            lambda x, y: np.allclose(x, x, equal_nan=True),
        ],
        PAIRS,
        NUMBERS,
        special=True,
    ),
    Row(
        "array_equal",
        [
            lambda x, y: np.array_equal(x, y),
            lambda x, y: np.array_equal(x, x.copy()),
            lambda x, y: np.array_equal(x, [1, 2]),
            lambda x, y: np.array_equal(x, x + 0, equal_nan=True),
        ],
        PAIRS,
        NUMBERS,
        special=True,
    ),
    Row(
        "array_equiv",
        [
            lambda x, y: np.array_equiv(x, y),
            lambda x, y: np.array_equiv(x, np.stack([x, x])),
            lambda x, y: np.array_equiv(x, [1, 2, 3]),
        ],
        PAIRS,
        ANY,
        low=1,
        high=1,
    ),
    Row(
        "isposinf",
        [lambda x: np.isposinf(x), lambda x: np.isposinf(x, out=np.zeros(x.shape, bool))],
        dtypes=REALS,
        special=True,
    ),
    Row("isneginf", [lambda x: np.isneginf(x)], dtypes=REALS, special=True),
    Row("iscomplex", [lambda x: np.iscomplex(x), lambda x: np.iscomplex(x * 0)], dtypes=ANY),
    Row("isreal", [lambda x: np.isreal(x), lambda x: np.isreal(x * 0)], dtypes=ANY),
    Row("iscomplexobj", [lambda x: np.asarray(np.iscomplexobj(x))], dtypes=ANY),
    Row("isrealobj", [lambda x: np.asarray(np.isrealobj(x))], dtypes=ANY),
    Row(
        "result_type",
        [
            lambda x, y: x.astype(np.result_type(x, np.float32)),
            lambda x, y: x.astype(np.result_type(x, y, 1.5)),
            lambda x, y: x.astype(np.result_type(x, "i4", 3)),
        ],
        PAIRS,
        NUMBERS,
    ),
    Row(
        "can_cast",
        [lambda x: np.asarray([np.can_cast(x.dtype, "f4"), np.can_cast(x.dtype, "i8", "same_kind")])],
        dtypes=ANY,
    ),
    Row("min_scalar_type", [lambda x: x.astype(np.min_scalar_type(x))], ((MATRIX,),), ANY),
    Row("common_type", [lambda x, y: x.astype(np.common_type(x, y))], PAIRS, NUMBERS),
]
