"""Lists that loops of a program make, together with one another and with other lists: calls against plain ones."""

import copy
import functools
import itertools
import operator

import numpy as np
import pytest

import cyxla

X = np.linspace(-1, 2, 64)
N = 32  # more than loops unroll


def add(x, _):
    return [x[k] * 2 for k in range(N)] + [x[k] - 1 for k in range(N)]


def add_argument(x, w):
    made = [x[k] * 2 for k in range(N)]
    return made + w, w + made


def add_in_place(x, w):
    made = [x[k] * 2 for k in range(N)]
    made += [x[k] - 1 for k in range(N)]
    made += w
    return made


def add_to_argument(x, w):
    made = [x[k] * 2 for k in range(N)]
    kept = w
    w += made
    w += [x[k] - 1 for k in range(N)]
    return len(kept)


def extend(x, w):
    made = [x[k] * 2 for k in range(N)]
    made.extend([x[k] - 1 for k in range(N)])
    w.extend(made)
    return made


def appended(x, _):
    first, second = [], []
    for k in range(N):
        first.append(x[k])
        second.append(x[k] * 2)
    return first + second, second + [1.0]  # noqa: RUF005


def slices(x, w):
    made, other = [x[k] * 2 for k in range(N)], [x[k] - 1 for k in range(N)]
    made[2:5] = other
    w[1:2] = other
    return made


def functions(x, _):
    one, other = [x[k] * 2 for k in range(N)], [x[k] - 1 for k in range(N)]
    chained = list(itertools.chain(one, other))
    return (
        operator.add(one, other),
        functools.reduce(operator.concat, [one, other, one]),
        chained,
    )


def comparisons(_, w):
    one, other = [k for k in range(N)], [k for k in range(N)]  # noqa: C416
    return one == other, one < [*other, 1], one == w, w == one


def halves(x, _):
    """Transform by halves, as the fast Fourier transform does."""
    if len(x) == 1:
        return np.array(x)
    even, odd = halves(x[::2], _), halves(x[1::2], _)
    half = len(x) // 2
    return np.array([even[k] + odd[k] for k in range(half)] + [even[k] - odd[k] for k in range(half)])


CASES = (
    add, add_argument, add_in_place, add_to_argument, extend, appended, slices, functions, comparisons, halves,
)  # fmt: skip


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_lists(function):
    for x, w in ((X, [3.0, 1.0]), (-X, [3.0])):
        others = copy.deepcopy(w)
        got, expected = cyxla.jit(function)(x, w), function(x, others)
        assert np.array_equal(w, others)
        pairs = zip(got, expected, strict=True) if isinstance(expected, tuple) else [(got, expected)]
        assert all(np.array_equal(a, b) for a, b in pairs)


def test_loop_while_a_list_of_run_time_length_has_elements():
    def last(x, limit):
        pending = [x[0]]
        while pending:
            value = pending.pop()
            if value < limit:
                pending.append(value + 1)
        return value

    function = cyxla.jit(last, fallback="error")
    with pytest.raises(cyxla.errors.OpError, match="adds items to a list"):  # not an internal error
        function(X, 3)
