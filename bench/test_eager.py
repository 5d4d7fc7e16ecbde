"""Ops on arrays, without a graph: at most some microseconds above NumPy's own function."""

import numpy as np
import pytest

from cyxla import raw_ops

X = np.float32([1, 2, 3, 4])
FUNCTIONS = {
    "numpy": lambda: np.tanh(X),
    "tanh": lambda: raw_ops.Tanh(x=X),
    "add": lambda: raw_ops.AddV2(x=X, y=X),
    "matmul": lambda: raw_ops.MatMul(a=X[None], b=X[:, None], transpose_a=False),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_small_arrays(benchmark, name):
    benchmark(FUNCTIONS[name])
