"""Keys of static values, by which calls and values from outside are compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt


def static_key(value: Any) -> Any:
    """Return a key of a static value that distinguishes 1, 1.0 and True, and 0.0 and -0.0."""
    kind = type(value)
    if kind in (tuple, frozenset):
        return (kind, kind(map(static_key, value)))
    if kind is float:
        return (kind, value.hex())
    if kind is complex:
        return (kind, value.real.hex(), value.imag.hex())
    if kind is slice:
        return (kind, static_key(value.start), static_key(value.stop), static_key(value.step))
    if isinstance(value, np.dtype):
        return (kind, value, None)
    if isinstance(value, np.generic):
        return (kind, value, value.tobytes())
    if kind is np.ndarray:
        return (kind, value.dtype, value.shape, value.tobytes())
    return (kind, value)


def read_only_copy(value: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy that cannot be written."""
    copied = value.copy()
    copied.flags.writeable = False
    return copied


def with_keys(values: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return the arrays among static values with their keys, for `require_unwritten`."""
    return [(value, static_key(value)) for value in values if type(value) is np.ndarray]


def require_unwritten(arrays: Iterable[tuple[Any, Any]]) -> None:
    """Check that static arrays have the keys that they had before a function was traced.

    NumPy's ``ufunc.at`` and functions of C write to arrays that are read-only.

    Raises
    ------
    ValueError
        An array was written, with NumPy's text for one that is read-only.
    """
    if any(static_key(array) != key for array, key in arrays):
        raise ValueError("output array is read-only")
