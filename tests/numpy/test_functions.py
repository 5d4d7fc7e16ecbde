"""Every row of the table: what NumPy gives, traced and compiled code gives, too."""

import zlib

import numpy as np
import pytest
from function_rows import SUBJECTS, check, rows

CASES = [
    pytest.param(row, call, shapes, id=f"{subject}-{row.name}-{k}-{'x'.join(map(str, shapes)).replace(' ', '')}")
    for subject in SUBJECTS
    for row in rows(subject)
    for k, call in enumerate(row.calls)
    for shapes in row.shapes
]


@pytest.mark.parametrize("row, call, shapes", CASES)
def test_function(row, call, shapes, request):
    seed = zlib.crc32(request.node.name.encode())
    rng = np.random.default_rng(seed)
    letters = row.dtypes if len(row.dtypes) <= 3 else "".join(rng.choice(list(row.dtypes), 3, replace=False))
    for letter in letters:
        for platform in row.platforms:
            check(row, call, row.arrays(rng, shapes, letter), platform)
