"""Random modules of local variables give what the plain functions give: the first inputs of the fuzzer."""

import numpy as np
import pytest
from support.functions.holder_checks import COMPILED, check_holders
from support.functions.random_locals import random_locals

SEEDS = range(0, 16)


def test_random_locals():
    compiled = 0
    for seed in SEEDS:
        try:
            compiled += check_holders(random_locals(seed), "interpreter", (int, float, np.generic)) == COMPILED
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}")
    assert compiled >= len(SEEDS) // 3


def test_equal_seeds():
    assert random_locals(3) == random_locals(3) != random_locals(4)
