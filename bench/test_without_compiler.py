"""Claims: without a C compiler, usual functions take at most 1.1 times NumPy's time, and are faster on average.

Each function runs in turn with NumPy on the same arrays; ratios are of the shortest times. Pairs below the limit run
longer, since neighbours of a virtual machine may keep one of its processors busy for a while.
``python bench/test_without_compiler.py [NAME ..]`` prints the table of ratios.
"""

import os
import sys
import time
from math import exp, log

import numpy as np
import pytest

SIZES = {"1e3": (25, 40), "1e5": (250, 400), "1e6": (1000, 1000)}
DTYPES = ("f8", "f4")
SECONDS = float(os.environ.get("BENCH_SECONDS", "0.15"))  # for each pair
LONGER = 12  # times as long for pairs below the limit
AT_MOST = 1.1
MEAN_AT_LEAST = 1.5


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x):
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5)


def log_sum_exp(x):
    top = x.max(axis=1)
    return top + np.log(np.exp(x - top[:, None]).sum(axis=1))


def where_chain(x):
    return np.where(x < -1, -1 - 0.1 * (x + 1), np.where(x > 1, 1 + 0.1 * (x - 1), x * x * x))


def sigmoid_tanh(x):
    return np.tanh(1 / (1 + np.exp(-x))) * x


def normalise_columns(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


#: Functions of a matrix of normal numbers.
FUNCTIONS = {
    "sum": lambda x: x.sum(),
    "sum axis 0": lambda x: x.sum(axis=0),
    "sum axis 1": lambda x: x.sum(axis=1),
    "mean keepdims": lambda x: x.mean(axis=1, keepdims=True),
    "mean of squares": lambda x: np.mean((x - 1) ** 2),
    "max": lambda x: x.max(),
    "max axis 0": lambda x: x.max(axis=0),
    "min axis 1": lambda x: x.min(axis=1),
    "prod": lambda x: (1 + 1e-2 * x).prod(axis=1),
    "var axis 0": lambda x: x.var(axis=0),
    "std": lambda x: x.std(),
    "cumsum": lambda x: x.cumsum(),
    "cumsum axis 0": lambda x: np.cumsum(x, axis=0),
    "cumprod axis 1": lambda x: np.cumprod(1 + 1e-3 * x, axis=1),
    "softmax": softmax,
    "layer norm": layer_norm,
    "log-sum-exp": log_sum_exp,
    "sort": lambda x: np.sort(x, axis=1),
    "sort all": lambda x: np.sort(x.ravel()),
    "argsort": lambda x: np.argsort(x, axis=1, kind="stable"),
    "median": lambda x: np.median(x, axis=1),
    "argmax": lambda x: x.argmax(),
    "argmax axis 1": lambda x: x.argmax(axis=1),
    "any and all": lambda x: ((x > 5).any(axis=1), (x > -5).all(axis=1)),
    "fft": lambda x: np.fft.fft(x, axis=1),
    "rfft of all": lambda x: np.fft.rfft(x.ravel()),
    "product": lambda x: x @ x.T[:, :100],
    "matrix-vector": lambda x: x @ x[0],
    "gather": lambda x: x[np.arange(0, x.shape[0], 2)],
    "where chain": where_chain,
    "clip": lambda x: np.clip(x, -1, 1),
    "exp": np.exp,
    "tanh": np.tanh,
    "sigmoid and tanh": sigmoid_tanh,
    "outer": lambda x: np.outer(x[:, 0], x[0]) + x,
    "broadcast": lambda x: (x - x[0]) * x[:, :1],
    "concatenate": lambda x: np.concatenate([x, x + 1], axis=1),
    "transpose": lambda x: np.ascontiguousarray(x.T),
    "normalise columns": normalise_columns,
    "cov": lambda x: np.cov(x[:, :40].T),
    "histogram": lambda x: np.histogram(x, bins=50, range=(-4, 4))[0],
    "bincount": lambda x: np.bincount(np.abs(x.ravel() * 10).astype(np.int64), minlength=100)[:100],
    "interp": lambda x: np.interp(x, np.linspace(-4, 4, 64), np.linspace(-4, 4, 64) ** 2),
    "diff": lambda x: np.diff(x, axis=1),
    "euclidean": lambda x: np.sqrt((x * x).sum(axis=1)),
}


def arguments(size, dtype):
    """Return the matrix of a size."""
    return np.random.default_rng(0).standard_normal(SIZES[size]).astype(dtype)


def ratio(function, x, seconds=SECONDS):
    """Return the time of NumPy over the time under `cyxla.jit`: the shortest of several, measured in turn."""
    import cyxla

    jitted = cyxla.jit(function)
    same(jitted(x), function(x))
    jitted(x)
    times = [[], []]
    repeat = max(1, int(5e-5 / shortest(function, x, 1)))
    started = time.perf_counter()
    while (
        len(times[0]) < 5
        or (spent := time.perf_counter() - started) < seconds
        or (spent < LONGER * seconds and min(times[0]) * AT_MOST < min(times[1]))
    ):
        for taken, run in zip(times, (function, jitted), strict=True):
            taken.append(shortest(run, x, repeat))
    return min(times[0]) / min(times[1])


def shortest(run, x, repeat):
    """Return the seconds of a call in a batch."""
    started = time.perf_counter()
    for _ in range(repeat):
        run(x)
    return (time.perf_counter() - started) / repeat


def same(got, want):
    """Raise unless results are close, and of equal types."""
    if isinstance(want, tuple):
        for g, w in zip(got, want, strict=True):
            same(g, w)
        return
    assert (type(got), got.dtype) == (type(want), want.dtype)
    tolerance = 1e-3 if want.dtype.itemsize < 8 or want.dtype == np.complex64 else 1e-9
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * np.abs(want).max())


RATIOS = []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(benchmark, claim, monkeypatch, name):
    import cyxla

    monkeypatch.setenv("CYXLA_CC", "none")
    function = FUNCTIONS[name]
    row = {f"{size} {dtype}": ratio(function, arguments(size, dtype)) for size in SIZES for dtype in DTYPES}
    RATIOS.extend(row.values())
    worst = min(row, key=row.get)
    claim(f"{name}: NumPy's time over ours, least at {worst}", row[worst], at_least=1 / AT_MOST)
    benchmark(cyxla.jit(function), arguments("1e5", "f8"))


def test_mean(claim):
    claim("all functions: geometric mean", exp(sum(map(log, RATIOS)) / len(RATIOS)), at_least=MEAN_AT_LEAST)


def main(names):
    """Print the ratios of some functions, by default of all; at the end the smallest and the geometric mean."""
    found = []
    for name in names or FUNCTIONS:
        row = [ratio(FUNCTIONS[name], arguments(size, dtype)) for size in SIZES for dtype in DTYPES]
        found += row
        print(f"{name:20s}" + "".join(f"{r:9.2f}" for r in row), flush=True)
    print(f"{'smallest, mean':20s}{min(found):9.2f}{exp(sum(map(log, found)) / len(found)):9.2f}")


if __name__ == "__main__":
    os.environ["CYXLA_CC"] = "none"
    main(sys.argv[1:])
