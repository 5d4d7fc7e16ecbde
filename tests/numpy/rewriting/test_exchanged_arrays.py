"""Arrays that branches exchange under traced conditions, after arrays of known values."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import TraceError


def exchanged_with_known_values(x, k):
    made = np.zeros(4)
    total = 0.0
    for _ in range(k, -1, -1):
        total -= made[k] / 8
        for _ in range(20, k, -1):
            k += 1
            if x.max() > total:
                made[2] -= 0.125
            else:
                made, x = x, made
        while x[1] > -0.25:
            k += 1
            x[1] -= 1.0
    return total + made[0]


def test_exchanges_by_a_condition_are_refused_by_name(backend):
    with pytest.raises(TraceError, match="made is another array"):
        cyxla.jit(exchanged_with_known_values, platform=backend, fallback="error")(np.ones(4), 1)


def exchanged_in_a_branch_and_a_loop(x, y, t):
    for _ in range(3):
        if x.sum() > 2.0:
            y, x = x, y
        else:
            y += 0.25 * x
        n = 0
        while n < 3 and t <= x.sum():
            x, y = y * 0.5, x
            n += 1


def either_of_two_or_new_in_nested_branches(x, y, t):
    if t > 0:
        if t > 1:
            x, y = y, x
        elif t > -1:
            x = x + 1
    while x[0] < t:
        x = x * 2.0 + 1.0
    x += 1


@pytest.mark.parametrize("function", [exchanged_in_a_branch_and_a_loop, either_of_two_or_new_in_nested_branches])
def test_writes_to_either_of_several_arrays_are_refused(function, backend):
    with pytest.raises(TraceError, match="is another array or a new one"):
        cyxla.jit(function, platform=backend, fallback="error")(np.ones(3) / 2, np.ones(3), 1.5)
