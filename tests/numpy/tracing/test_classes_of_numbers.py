"""Numbers of classes derived from Python's, and functions that are chosen by the class of a value."""

import copy
import enum
import functools

import numpy as np
import pytest

import cyxla
from cyxla.errors import TraceError, UnimplementedError


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 4


class Count(int):
    pass


class Ratio(float):
    pass


class Mode(enum.IntFlag):
    A = 1
    B = 2


@functools.singledispatch
def size(value):
    return "other"


@size.register
def _(value: float):
    return value * 2


@size.register(np.ndarray)
def _(value):
    return value.sum()


class Sizes:
    @functools.singledispatchmethod
    def size(self, value):
        return "other"

    @size.register
    def _(self, value: int):
        return value + 1

    @size.register
    def _(self, value: float):
        return value * 3


EXPRESSIONS = {
    "sums": lambda n, f, x: (n + Level.HIGH, Level.LOW + n, n - Count(2), Count(7) - n, f + Count(1)),
    "products": lambda n, f, x: (n * Ratio(2.5), Ratio(0.5) * n, Level.HIGH * f, n // Count(2), divmod(n, Count(2))),
    "comparisons": lambda n, f, x: (n < Level.HIGH, n == Level.LOW, n >= Count(3), f > Level.HIGH),
    "powers": lambda n, f, x: (n ** Count(2), f ** Ratio(0.5)),
    "arrays": lambda n, f, x: (x * Ratio(2), x + Level.HIGH, x.astype("f4") * Ratio(2), x.astype("u1") + Count(1)),
    "copies": lambda n, f, x: (copy.copy(n), copy.deepcopy([f])[0], copy.copy(n > 2), copy.copy(x[0]), copy.copy(x)),
    "generic functions": lambda n, f, x: (size(f), size(x), size("a"), functools.reduce(max, [size(f), 2.0])),
    "generic methods": lambda n, f, x: (Sizes().size(n), Sizes().size(f), Sizes().size("a")),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_classes(name):
    plain, function = EXPRESSIONS[name], cyxla.jit(EXPRESSIONS[name])
    for n, f in ((3, 1.5), (5, 2.5)):
        for got, expected in zip(function(n, f, np.arange(3.0)), plain(n, f, np.arange(3.0)), strict=True):
            assert type(got) is type(expected)
            assert getattr(got, "dtype", None) == getattr(expected, "dtype", None)
            np.testing.assert_array_equal(got, expected)


def test_operators_of_their_own():
    with pytest.raises(UnimplementedError, match="a Mode has operators of its own"):
        cyxla.jit(lambda n: n & Mode.A)(3)


def _least(x, s):
    return 0.5 * x[0] + min(np.abs(x).astype(float).sum(), s) / 4


def _one_side(x, s):
    t = np.abs(x).astype(float).sum() if abs(x[0]) > s else s
    return x * (t - 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.complex64])
@pytest.mark.parametrize("function", [_least, _one_side])
def test_numbers_of_python_or_numpy_beside_single_precision(function, dtype):
    x = np.ones(3, dtype)
    jitted = cyxla.jit(function, fallback="numpy")
    for s in (0.1, 100.0, 0.2, 50.0):
        assert jitted(x, s).dtype == function(x, s).dtype
    with pytest.raises(TraceError, match="of Python or of NumPy by the values"):
        cyxla.jit(function, fallback="error")(x, 0.1)
