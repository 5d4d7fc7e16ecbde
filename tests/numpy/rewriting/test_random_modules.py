"""Random modules of functions give what the plain functions give, or are refused: the first inputs of the fuzzer."""

import pytest
from support.functions.module_checks import REFUSALS, check, turns_on_rounding
from support.functions.random_modules import random_module

SEEDS = range(5000, 5012)


def test_random_modules():
    refused = 0
    for seed in SEEDS:
        try:
            check(random_module(seed), "interpreter")
        except REFUSALS:
            refused += 1
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}")
    assert refused <= len(SEEDS) // 3


TURNING = """
import numpy as np

ARGUMENTS = [("x", "f8", (12,)), ("y", "f8", (3,))], 3


def main(x, y, t, k):
    {body}
"""


A_TIE = """\
y[:] = [1.0, 0.5, -2.5]
    for _ in range(40):
        if y[1] > y.sum() - 1.5:  # met in many iterations, of which one suffices
            y += [0.7, -0.6, -0.1]
    return y"""


@pytest.mark.parametrize(
    "body, turns",
    [
        ("return 1.0 if np.sin(x).sum() == 0.5 * (np.sin(x) * 2).sum() else 2.0", True),
        ("return np.exp(x).mean() * 1e17 % 3.0", True),
        ("return 1.0 if x.sum() == np.cumsum(x)[-1] else 2.0", False),  # quarters: exact in every order
        (A_TIE, True),
        ("return np.empty_like(x)", True),
        ("z = np.empty_like(x); z[...] = x; return z", False),
        ("x[1:] = np.sin(x[:-1]) * x.mean()", False),
        ("a = np.arange(16.0).reshape(4, 4); a[1] = a[:, 2]; return a", True),  # NumPy reads what it has written
        ("a = np.arange(16.0).reshape(4, 4); a[1] = a[:, 1]; x[1:] = x[:-1]; return a", False),
        ("raise ValueError('always')", False),
    ],
)
def test_programs_that_turn_on_rounding(body, turns):
    assert turns_on_rounding(TURNING.format(body=body)) == turns
