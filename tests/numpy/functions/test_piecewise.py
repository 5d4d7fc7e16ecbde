"""`np.piecewise`: functions get the selected elements alone."""

import numpy as np
import pytest

import cyxla

CALLS = {
    "element by element": lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v**2]),
    "greatest": lambda x: np.piecewise(x, [x > 0], [lambda v: v.max()]),
    "sums and means": lambda x: np.piecewise(x, [x < 0, x > 1], [np.cumsum, lambda v: v - v.mean(), 7]),
    "reversed": lambda x: np.piecewise(x, x > 1, [lambda v: v[::-1], -1]),
    "arguments": lambda x: np.piecewise(x, [x < 0], [lambda v, k: v * k, lambda v, k: np.exp(v) / k], 2.0),
    "nowhere": lambda x: np.piecewise(x, [x > 100], [lambda v: v.max(), 3]),
    "numbers": lambda x: np.piecewise(x, [x < 0, x >= 0], [-1, 1]),
    "places": lambda x: np.piecewise(x, [x > 0], [lambda v: v * np.arange(len(v))]),
    "an element": lambda x: np.piecewise(x, [x > 1], [lambda v: v[2] * 2 + v]),
}


@pytest.mark.parametrize("value", [lambda x: lambda v: x * 2, lambda x: lambda v: np.ones(10)], ids=["traced", "known"])
def test_values_of_another_size_than_the_selected_elements_are_refused(value):
    def function(x):
        return np.piecewise(x, [x > 0], [value(x)])

    x = np.linspace(-4, 5, 10)
    for call in (function, cyxla.jit(function, fallback="error"), cyxla.jit(function, fallback="numpy")):
        with pytest.raises(ValueError, match=r"elements|values|shape"):
            call(x)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
@pytest.mark.parametrize("name", CALLS)
def test_calls(name, dtype, backend):
    x = np.linspace(-4, 5, 10).astype(dtype)
    got, want = cyxla.jit(CALLS[name], platform=backend, fallback="error")(x), CALLS[name](x)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-6)
