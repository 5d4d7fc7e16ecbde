"""Every row of the table: traced and compiled results equal NumPy's."""

import zlib

import numpy as np
import pytest
from support.functions.function_rows import SUBJECTS, check, rows


def shares(row):
    """Return two or three dtypes for each call and group of shapes, in turns, in an order by the row's name."""
    calls = len(row.calls) * len(row.shapes)
    order = np.random.default_rng(zlib.crc32(row.name.encode())).permutation(list(row.dtypes))
    each = min(2 if calls > 2 else 3, len(order))
    return ["".join(order[(each * k + j) % len(order)] for j in range(each)) for k in range(calls)]


CASES = [
    pytest.param(
        row, call, shapes, letters, id=f"{subject}-{row.name}-{k}-{'x'.join(map(str, shapes))}".replace(" ", "")
    )
    for subject in SUBJECTS
    for row in rows(subject)
    for (k, call, shapes), letters in zip(
        ((k, call, shapes) for k, call in enumerate(row.calls) for shapes in row.shapes), shares(row), strict=True
    )
]


@pytest.mark.slow_but_every(34)
@pytest.mark.parametrize("row, call, shapes, letters", CASES)
def test_function(row, call, shapes, letters, request):
    rng = np.random.default_rng(zlib.crc32(request.node.name.encode()))
    for letter in letters:
        for platform in row.platforms:
            check(row, call, row.arrays(rng, shapes, letter), platform)
