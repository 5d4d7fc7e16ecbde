"""Selections by masks of many elements: dtypes, sizes around those of blocks, sizes of run time, threads."""

import numpy as np
import pytest

import cyxla

DTYPES = "?bBhHiIlLefdFD"
SIZES = [0, 1, 7, 8, 63, 64, 65, 1599, 1600, 1601, 4097, 70_001]
PATTERNS = {
    "all": lambda n: np.ones(n),
    "none": lambda n: np.zeros(n),
    "half": lambda n: np.random.default_rng(n).integers(-3, 4, n),
    "few": lambda n: np.random.default_rng(n).random(n) > 0.997,
    "last": lambda n: np.arange(n) == n - 1,
}


def select(x, table, n):
    """Return what the first n elements of a mask select: of run-time size before the selection already."""
    part = x[:n]
    return np.nonzero(part > 0)[0], part[part > 0], table[:n][part > 0]


def select_whole(x, table):
    return np.nonzero(x > 0)[0], x[x > 0], table[x > 0]


def elements(dtype, pattern, size):
    x = PATTERNS[pattern](size).astype(np.uint8 if dtype in "BHIL" and pattern != "half" else np.int8).astype(dtype)
    if dtype in "efdFD":
        x[::5] = np.nan
        x[3::7] *= -0.0
    return x


def same(got, wanted):
    for g, w in zip(got, wanted, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        assert g.tobytes() == w.tobytes()


@pytest.fixture
def each_number_of_threads():
    """Return a function that runs a call in one thread, then in two."""
    before = cyxla.threads()

    def run(call):
        for threads in (1, 2):
            cyxla.threads(threads)
            yield call()

    yield run
    cyxla.threads(before)


@pytest.mark.slow_but_every(3)
@pytest.mark.filterwarnings("ignore:invalid value")  # NumPy, of complex NaN
@pytest.mark.parametrize("dtype", DTYPES)
def test_sizes_of_run_time(dtype, each_number_of_threads):
    compiled = cyxla.jit(select, platform="cpu")
    table = (np.arange(SIZES[-1] * 3) % 100).reshape(-1, 3).astype(dtype)
    compiled(elements(dtype, "half", SIZES[-1]), table, 9)
    compiled.wait()
    for pattern in PATTERNS:
        x = elements(dtype, pattern, SIZES[-1])
        for size in SIZES:
            wanted = select(x, table, size)
            for got in each_number_of_threads(lambda x=x, size=size: compiled(x, table, size)):
                same(got, wanted)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("size", SIZES)
def test_sizes(size, each_number_of_threads):
    compiled = cyxla.jit(select_whole, platform="cpu")
    for pattern in PATTERNS:
        x, table = elements("d", pattern, size), np.arange(size * 3.0).reshape(size, 3)
        for got in each_number_of_threads(lambda x=x, table=table: compiled(x, table)):
            same(got, select_whole(x, table))


@pytest.mark.parametrize("columns", [1, 100, 1000])
def test_rows_of_a_table(columns, each_number_of_threads):
    """Rows are copied in runs, those of many bytes in one phase; the sum reads what the size leaves."""

    def rows(table, m, n):
        part = table[:n][m[:n]]
        return part, part.sum(axis=0), table[m]

    table, compiled = np.arange(997 * columns).reshape(997, columns), cyxla.jit(rows, platform="cpu")
    for pattern in PATTERNS:
        m = PATTERNS[pattern](997) > 0
        for n in (0, 1, 500, 996, 997):
            for got in each_number_of_threads(lambda m=m, n=n: compiled(table, m, n)):
                same(got, rows(table, m, n))
