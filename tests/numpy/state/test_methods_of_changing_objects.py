"""Bound methods from outside whose object changes by calls: a generator's, a list's, and those of partials of them."""

import random
from collections import deque
from functools import partial

import numpy as np
import pytest
from scipy import stats

import cyxla
from cyxla.errors import FallbackWarning

X = np.ones(3)
NUMBERS = [float(k) for k in range(1, 12)]


def _draw(x, draw):
    return x + draw(3)


def _take(x, take):
    return x + take()


def _from_dict(x, functions):
    return x + functions["draw"](3)


def _frozen_distribution():
    distribution = stats.norm()
    distribution.random_state = np.random.RandomState(1)
    return distribution.rvs


def _rng():
    return np.random.default_rng(1)


#: Function, and what makes its second argument anew.
ARGUMENTS = {
    "Generator": (_draw, lambda: _rng().standard_normal),
    "RandomState": (_draw, lambda: np.random.RandomState(1).standard_normal),
    "partial of a Generator's": (_draw, lambda: partial(_rng().normal, 1.0, 2.0)),
    "random.Random": (_take, lambda: random.Random(1).random),
    "dict": (_from_dict, lambda: {"draw": _rng().standard_normal}),
    "default of a lambda": (_draw, lambda: lambda n, rng=_rng(): rng.normal(size=n)),  # noqa: B008
    "distribution with a state": (_draw, lambda: partial(stats.norm.rvs, random_state=np.random.RandomState(1))),
    "frozen distribution": (_draw, _frozen_distribution),
    "list.pop": (_take, lambda: NUMBERS.copy().pop),
    "deque.popleft": (_take, lambda: deque(NUMBERS).popleft),
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name):
    function, make = ARGUMENTS[name]
    plain, passed = make(), make()
    f = cyxla.jit(function, fallback="numpy")
    with pytest.warns(FallbackWarning, match="whose contents may change"):
        results = [f(X, passed) for _ in range(3)]
    np.testing.assert_array_equal(results, [function(X, plain) for _ in range(3)])


def _of_variable():
    draw = _rng().standard_normal
    return lambda x: x + draw(3)


def _of_list():
    take = NUMBERS.copy().pop
    return lambda x: x + take()


def _of_deque():
    take = deque(NUMBERS).popleft
    return lambda x: x + take()


def _appending():
    seen = []
    append = seen.append

    def function(x):
        append(1)
        return x + len(seen)

    return function


def _of_default():
    def function(x, rng=_rng()):  # noqa: B008
        return x + rng.normal(size=3)

    return function


def _of_default_of_called():
    def noise(n, rng=_rng()):  # noqa: B008
        return rng.normal(size=n)

    return lambda x: x + noise(3)


@pytest.mark.parametrize("make", [_of_variable, _of_list, _of_deque, _appending, _of_default, _of_default_of_called])
def test_functions(make):
    f, plain = cyxla.jit(make(), fallback="numpy"), make()
    with pytest.warns(FallbackWarning):
        results = [f(X) for _ in range(3)]
    np.testing.assert_array_equal(results, [plain(X) for _ in range(3)])


def test_generators_that_the_function_makes_are_compiled():
    def function(x):
        return x + np.random.RandomState(3).normal(size=3) + np.random.default_rng(3).normal(size=3)

    np.testing.assert_array_equal(cyxla.jit(function, fallback="error")(X), function(X))


def test_a_default_that_is_not_used_is_compiled():
    def function(x, shift=0.0, rng=_rng()):  # noqa: B008
        return x + rng.normal(size=3) + shift

    f = cyxla.jit(function, fallback="error")
    assert not np.array_equal(f(X, rng=_rng()), f(X, rng=np.random.default_rng(2)))
