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
