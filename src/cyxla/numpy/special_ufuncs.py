"""SciPy's special functions on traced arrays."""

from __future__ import annotations

import numpy as np

from cyxla.numpy.emitting import Emit


def find_special(ufunc: np.ufunc) -> Emit | None:
    """The row of a ufunc of `scipy.special`; None if there is none."""
    return None
