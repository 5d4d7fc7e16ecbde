"""Long sequences of kernels are tables of launches, with every kind of buffer that a kernel can have."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cyxla

RNG = np.random.default_rng(0)
SQUARE = RNG.standard_normal((30, 30)) + 30 * np.eye(30)


def repeated(function, x, count):
    """Apply a function several times: not in a loop, which would be one of the program."""
    return x if count == 0 else repeated(function, function(x), count - 1)


def sorted_sums(x):
    """Kernels that nothing fuses, on one thread."""
    return repeated(lambda x: np.cumsum(np.sort(x)) / 100, x, 10)


def solved(x):
    """Kernels that call functions of the host, and get the context."""
    return repeated(lambda x: np.sort(np.linalg.eigvalsh(x @ SQUARE / 900) + x), x, 9)


def sums_and_a_loop(x):
    """A table before a loop, and one behind it."""
    x = sorted_sums(x)
    for k in range(40):
        x = np.where(x[k % 7] > 0, -x, x[::-1])
    return sorted_sums(x)


def of_run_time_size(x):
    """Kernels that ask how much work there is."""
    return repeated(lambda x: np.sort(np.sin(x)) - x.mean(), x[x > 0], 10)


def several_results(x):
    """Copies into results before the end."""
    found = [x]
    for _ in [None] * 20:
        found.append(np.cumsum(found[-1][::-1]) / 100)
    return found


CASES = [
    (sorted_sums, (1000,)),
    (sorted_sums, (1 << 20,)),  # several threads, and phases
    (sorted_sums, (0,)),
    (solved, (30, 30)),
    (sums_and_a_loop, (1000,)),
    (of_run_time_size, (1000,)),
    (of_run_time_size, (1 << 20,)),
    (several_results, (500,)),
]


@pytest.mark.parametrize("prebuilt", ["0", "1"])
@pytest.mark.parametrize("function, shape", CASES)
def test_sequences_of_kernels(function, shape, prebuilt, monkeypatch):
    monkeypatch.setenv("CYXLA_PREBUILT", prebuilt)
    x = RNG.standard_normal(shape)
    compiled = cyxla.jit(function)
    for _ in range(2):
        found, expected = compiled(x), function(x)
        assert type(found) is type(expected)
        for pair in zip(*(v if isinstance(v, list) else [v] for v in (found, expected)), strict=True):
            np.testing.assert_allclose(*pair, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("prebuilt, called", [("0", "cyx_launch_all"), ("1", r"/\* launch_all, [0-9a-f]{16} \*/\)")])
@pytest.mark.parametrize("count, is_table", [(4, False), (20, True)])
def test_short_sequences_are_statements(count, is_table, prebuilt, called, monkeypatch):
    monkeypatch.setenv("CYXLA_PREBUILT", prebuilt)

    def chain(x):
        return repeated(lambda x: np.cumsum(x[::-1]), x, count)

    source = cyxla.jit(chain).compile(np.zeros(100)).c_source
    assert bool(re.search(rf"{called}\(launches, ", source)) == is_table
