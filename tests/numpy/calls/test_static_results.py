"""Results that are passed through, such as slices and functions, which may hold traced values."""

import functools

import numpy as np
import pytest

import cyxla
from cyxla.errors import TraceError


def test_slices_of_numbers_among_the_arguments():
    def windows(low, high):
        return [slice(low, high), (slice(None, low + 1, 1),)]

    function = cyxla.jit(windows)
    assert [function(*w) for w in ((1, 3), (1, 3), (2, 5))] == [windows(*w) for w in ((1, 3), (1, 3), (2, 5))]


CONSTANTS = {
    "list": lambda x: [0] * 500,
    "tuple": lambda x: (2.5, True, 3j, 2**70, -0.0) * 50,
    "nested": lambda x: [[[1, 2.5]] * 40, (x[0], [(k, k * 1.5) for k in range(50)])],
    "few": lambda x: ([1, 2], (3,)),
    "with other values": lambda x: [1, None, "a"] * 50,
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constant_lists(name):
    """Lists of constants are new in each call."""
    function = CONSTANTS[name]
    compiled = cyxla.jit(function, fallback="error")
    x = np.arange(3.0)
    for _ in range(2):
        got = compiled(x)
        assert repr(got) == repr(function(x))
        if isinstance(got, list):
            (got[0] if isinstance(got[0], list) else got).append(7)


def test_long_constant_lists_are_no_outputs_of_the_program():
    lowered = cyxla.jit(lambda x: ([0] * 5000, x + 1)).lower(cyxla.spec((3,)))
    assert sum(len(c.instructions) for c in lowered.computations.values()) < 20


HOLDERS = {
    "slice": lambda x: slice(x[0], None),
    "function": lambda x: lambda y: x + y,
    "default": lambda x: lambda y=x: y,
    "partial": lambda x: functools.partial(max, x[0]),
    "method": lambda x: [x[0]].append,
}


@pytest.mark.parametrize("name", HOLDERS)
def test_holders_of_traced_values(name):
    with pytest.raises(TraceError):
        cyxla.jit(HOLDERS[name])(np.arange(3.0))
