"""Numbers of classes derived from Python's, and functions that are chosen by the class of a value."""

import copy
import enum
import functools

import numpy as np
import pytest

import cyxla
from cyxla.errors import UnimplementedError


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
