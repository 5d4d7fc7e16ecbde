"""Rows of ufuncs."""

import numpy as np

from function_rows import CUBE, EMPTY, INEXACT, MATRIX, NUMBERS, SCALAR, Row

PAIRS = ((MATRIX, MATRIX), (CUBE, MATRIX[1:]), (SCALAR, MATRIX), (EMPTY, EMPTY))

ROWS = [
    Row(
        "add", [lambda x, y: np.add(x, y), lambda x, y: x + y, lambda x, y: x + 2], PAIRS, NUMBERS, differentiable=True
    ),
    Row("exp", [lambda x: np.exp(x)], dtypes=INEXACT, special=True, differentiable=True),
]
