"""Classes of traced values as the user's program sees them: those that the values have in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.results.zero_dim import Rank0


def class_of(value: Any) -> type:
    """Return the class that a value has where nothing is traced."""
    if isinstance(value, SizedArray):
        return np.ndarray
    if not isinstance(value, TracedArray):
        return type(value)
    if value.weak is not None:
        return value.weak
    if value.ndim or value.rank0 is Rank0.ARRAY:
        return value.numpy_class
    if value.rank0 is Rank0.PYTHON and value.dtype.kind == "b":
        return bool
    return value.dtype.type


def is_number(value: Any) -> bool:
    """Return True for a traced number: one of Python's, or a scalar of NumPy's."""
    return isinstance(value, TracedArray) and value.ndim == 0 and class_of(value) is not np.ndarray


def lacks_attribute(value: Any, name: str) -> bool:
    """Return True if a traced number or array has no attribute of a name where nothing is traced."""
    kind = class_of(value)
    if kind is np.ndarray and name == "at":  # which arrays have in compiled functions alone
        return False
    return not any(name in vars(base) for base in kind.__mro__)  # the class itself has more, such as its name


def missing_attribute(value: Any, name: str) -> AttributeError:
    """Return Python's error for an attribute that a number does not have."""
    kind = class_of(value)
    shown = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return AttributeError(f"'{shown}' object has no attribute {name!r}", name=name)
