"""Strategies for arrays with special values: NaN, infinities, signed zeros, denormals, extreme integers."""

import numpy as np
from hypothesis import strategies as st

from cyxla.testing.values import integer_range, ordinary, random_array, special_values
from cyxla.types import Shape

__all__ = ["arrays", "integer_range", "ordinary", "random_array", "special_values"]


def arrays(shape: Shape) -> st.SearchStrategy[np.ndarray]:
    """Return a strategy for arrays of one shape with various fractions of special values."""
    return st.builds(random_array, st.just(shape), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 1.0]))
