"""Returns from `with` statements that suppress exceptions, and statements behind them."""

import contextlib

import numpy as np
import pytest

import cyxla

X = np.arange(3.0)


def suppressed(x):
    with contextlib.suppress(ValueError):
        int("text")
        return -x
    return x


def not_suppressed(x):
    with contextlib.suppress(ValueError):
        int("3")
        return -x
    return x


def statements_behind(x):
    total = 0.0
    with contextlib.suppress(KeyError):
        total = {"a": x}["b"]
        return total  # noqa: RET504
    total += x.sum()
    return total * 2


def branches(x):
    with contextlib.suppress(IndexError):
        if x[0] > 5:
            return [x][1]
        return x * [2][0]
    return x + 1


def nested(x):
    with np.errstate(all="ignore"):
        with contextlib.suppress(KeyError):
            return {}["a"] * x
        x = x * 3
    return x + 1


def in_a_loop(x):
    for k in range(3):
        with contextlib.suppress(IndexError):
            return [10, 20][k + 2] * x
    return x


def two(x):
    with contextlib.suppress(KeyError):
        return {}["a"]
    with contextlib.suppress(KeyError):
        return {"a": x * 2}["a"]
    return x


@pytest.mark.parametrize("function", [suppressed, not_suppressed, statements_behind, branches, nested, in_a_loop, two])
def test_results(function):
    compiled = cyxla.jit(function, platform="interpreter", fallback="error")
    np.testing.assert_array_equal(compiled(X), function(X))
