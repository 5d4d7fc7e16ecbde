"""Keys of static values, by which calls and values from outside are compared."""

from __future__ import annotations

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
