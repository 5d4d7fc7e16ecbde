"""Random programs give the same results on both platforms; `make fuzz` runs more of them."""

import pytest
from support.hlo import random_bounded, random_irregular, random_programs

from cyxla.errors import UnimplementedError


@pytest.mark.slow_but_every(22)
@pytest.mark.parametrize("seed", range(300))
def test_random_program(seed):
    try:
        random_programs.check(seed)
    except UnimplementedError as error:
        assert "no native code" in error.message  # noqa: PT017 - one of two right outcomes


@pytest.mark.slow_but_every(14)
@pytest.mark.parametrize("seed", range(60))
def test_random_bounded_program(seed):
    random_bounded.check(seed, 12)


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("seed", range(40))
def test_random_loops_over_integers(seed):
    random_programs.check(seed, 120, [random_irregular.recurrence])
