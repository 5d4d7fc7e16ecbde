"""Rows of sets."""

import numpy as np
from support.functions.function_rows import ANY, EMPTY, MATRIX, SCALAR, VECTOR, Row

ROWS = [
    Row(
        "isin",
        [lambda x, y: np.isin(x, y), lambda x, y: np.isin(x, y, invert=True), lambda x, y: np.isin(x, [1, 2, 3])],
        ((MATRIX, VECTOR), (SCALAR, SCALAR), (MATRIX, EMPTY), (VECTOR, (5, 6))),
        ANY,
        low=0,
        high=9,
        special=True,
    ),
    Row(
        "isin",
        [lambda x, y: np.isin(x, y, kind="table"), lambda x, y: np.isin(x, np.arange(30))],
        ((MATRIX, (20,)),),
        "bil",
    ),
]
