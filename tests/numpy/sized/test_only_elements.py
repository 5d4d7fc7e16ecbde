"""Arrays of run-time size that must have one element: as conditions, and by `item`."""

import numpy as np
import pytest
from support.functions.function_rows import outcome

import cyxla


def condition(x):
    if x[x > 3]:
        return 1
    return 0


def negation(x):
    return 1 if not np.flatnonzero(x == 4) else 2


def comparison(x):
    place = np.flatnonzero(x == 4)
    distance = x[place] - x[0]
    return distance[0] * 2 if distance < 2 else distance[0]


def under_a_condition(x):
    total = 0
    for value in range(5):
        places = np.flatnonzero(x == value)
        if places.size == 1:
            if x[places] > 2:
                total += 1
            elif not x[places] < 1:
                total += 10
    return total


def item(x):
    return x[np.flatnonzero(x == 4).item()] + 1, np.flatnonzero(x == 4).item()


def items(x):
    rows = x.reshape(3, 3)
    return (x[x > 0] / 2).item(-1), rows[rows[:, 0] > -1].item(0, 1), x[x > 0].item(0)


def of_empty(x):
    return x[:0][x[:0] > 1].item()


@pytest.mark.parametrize(
    "function", [condition, negation, comparison, under_a_condition, item, items, of_empty], ids=lambda f: f.__name__
)
def test_results_and_errors(function, backend):
    compiled = cyxla.jit(function, platform=backend)
    for seed in range(9):
        x = np.random.default_rng(seed).integers(0, 5, 9)
        (want, failure), (got, ours) = outcome(function, [x]), outcome(compiled, [x])
        assert isinstance(ours, ValueError) is isinstance(failure, ValueError)
        assert str(failure) in str(ours)
        assert got == want
        assert type(got) is type(want)
