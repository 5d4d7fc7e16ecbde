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
