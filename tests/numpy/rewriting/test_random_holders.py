"""Random modules of state in holders give what the plain functions give: the first inputs of the fuzzer."""

import pytest
from support.functions.holder_checks import COMPILED, check_holders
from support.functions.random_holders import random_holders

SEEDS = range(0, 12)


def test_random_holders():
    compiled = 0
    for seed in SEEDS:
        try:
            compiled += check_holders(random_holders(seed), "interpreter") == COMPILED
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}")
    assert compiled >= len(SEEDS) // 2


def test_equal_seeds():
    assert random_holders(3) == random_holders(3) != random_holders(4)
