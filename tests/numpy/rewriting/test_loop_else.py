"""The `else` of loops runs unless the loop is left by `break`, in functions with and without other jumps."""

import numpy as np
import pytest

import cyxla


def without_jumps(x):
    for i in range(int(x[0]) % 5):
        x[1] += i
    else:
        x[2] += 1


def of_a_while(x):
    while x[0] > 2:
        x[0] -= 2
    else:
        x[3] = -1


def of_a_known_loop(x):
    for i in (1, 2):
        x[i] += 1
    else:
        x[0] = 7


def in_a_branch(x):
    if x.sum() > 6:
        for i in range(int(x[0])):
            x[1] += i
        else:
            x[2] += 1


def in_a_loop(x):
    for k in range(20):
        for i in range(int(x[0]) % 3):
            x[1] += i
        else:
            x[2] += k
            y = x[2]
    x[3] = y


def in_an_else(x):
    for i in range(int(x[0]) % 3):
        x[1] += i
    else:
        while x[3] > 1:
            x[3] -= 1
        else:
            x[0] += 1


def beside_a_break(x):
    for i in range(4):
        if x[i] > 3:
            break
    else:
        x[2] = -1
    for k in range(3):
        x[k] += 1
    else:
        x[3] += i


def that_binds(x):
    for i in range(int(x[0]) % 3):
        y = x * i
    else:
        y = x + 1
    x[:] = y


FUNCTIONS = [
    without_jumps, of_a_while, of_a_known_loop, in_a_branch, in_a_loop, in_an_else, beside_a_break, that_binds,
]  # fmt: skip


@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_writes(function, platform):
    compiled = cyxla.jit(function, platform=platform, fallback="error")
    for values in ([1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 0.5], [5.0, 0.0, 0.0, 0.0], [3.0, 3.0, 3.0, 3.0]):
        got, want = np.array(values), np.array(values)
        assert compiled(got) is function(want) is None
        np.testing.assert_array_equal(got, want)
