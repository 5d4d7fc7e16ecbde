"""Random modules of functions give what the plain functions give, or are refused: the first inputs of the fuzzer."""

import pytest
from support.functions.module_checks import REFUSALS, check
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
