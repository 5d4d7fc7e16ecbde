"""How each of NumPy's ufuncs is written in HLO: one row for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.xla.hlo.builder import functions as xla

Emit = Callable[..., Any]
_TABLE: dict[np.ufunc, Emit] = {
    np.add: xla.add, np.subtract: xla.subtract, np.multiply: xla.multiply, np.true_divide: xla.divide,
    np.negative: xla.negate, np.exp: xla.exponential, np.tanh: xla.tanh, np.sqrt: xla.sqrt, np.less: xla.lt,
    np.maximum: xla.maximum, np.minimum: xla.minimum, np.sin: xla.sine, np.cos: xla.cosine, np.log: xla.log,
}  # fmt: skip


def find(ufunc: np.ufunc) -> Emit | None:
    """The row of a ufunc; None if there is none."""
    return _TABLE.get(ufunc)
