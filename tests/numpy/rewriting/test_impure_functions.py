"""Clocks and random numbers of Python in functions: NumPy runs them, rather than repeat the results of a trace."""

import datetime
import os
import random
import time
from random import gauss

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning, UnimplementedError

RNG = random.Random(0)
X = np.zeros(2)


def shuffled(x):
    order = [0, 1, 2, 3]
    random.shuffle(order)
    return x + order[0]


def swallowed(x):
    try:
        return x + random.random()
    except Exception:
        return x


def in_a_loop(x):
    for k in range(30):
        x = x + k * random.random()
    return x


def seeded(x):
    random.seed(3)
    return x * 2


FUNCTIONS = {
    "random.random": lambda x: x + random.random(),
    "random.gauss": lambda x: x + gauss(0, 1),
    "random.uniform": lambda x: np.where(x > 1, x, random.uniform(1, 2)),
    "random.shuffle": shuffled,
    "random.Random.random": lambda x: x + RNG.random(),
    "time.perf_counter": lambda x: x + time.perf_counter(),
    "datetime.datetime.now": lambda x: x + datetime.datetime.now().microsecond,
    "os.urandom": lambda x: x + os.urandom(4)[0],
    "in a loop": in_a_loop,
    "swallowed": swallowed,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_differ_from_call_to_call(name):
    f = cyxla.jit(FUNCTIONS[name], fallback="numpy")
    with pytest.warns(FallbackWarning):
        first = f(X)
    assert len({first.tobytes(), *[f(X).tobytes() for _ in range(8)]}) > 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_name_the_function(name):
    expected = "random.random" if name in ("in a loop", "swallowed") else name
    with pytest.raises(UnimplementedError, match=f"{expected} gives another result in each call") as caught:
        cyxla.jit(FUNCTIONS[name], fallback="error")(X)
    assert f"at:   {__file__}" in str(caught.value)


def test_seeds():
    f = cyxla.jit(seeded, fallback="numpy")
    with pytest.warns(FallbackWarning):
        f(X)
    first = random.random()
    f(X)
    assert random.random() == first


def _divided(x):
    with np.errstate(divide="raise"):
        try:
            return 1 / x
        except FloatingPointError:
            return x - 1


def _set_errors(x):
    before = np.seterr(all="raise")
    try:
        return 1 / x
    except FloatingPointError:
        return x - 2
    finally:
        np.seterr(**before)


@pytest.mark.parametrize("function", [_divided, _set_errors])
def test_floating_point_errors_that_are_asked_for(function):
    f = cyxla.jit(function, fallback="numpy")
    with pytest.warns(FallbackWarning, match="asks for 'raise'"):
        np.testing.assert_array_equal(f(X), function(X))
    np.testing.assert_array_equal(f(X + 1), function(X + 1))


def test_floating_point_errors_that_are_ignored():
    def ignoring(x):
        with np.errstate(all="ignore"):
            return 1 / x

    np.testing.assert_array_equal(cyxla.jit(ignoring, fallback="error")(X), [np.inf, np.inf])
