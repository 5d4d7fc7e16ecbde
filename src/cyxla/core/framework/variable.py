"""Mutable values: resource variables, and the reference variables of TensorFlow 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.resource_mgr import ResourceBase
from cyxla.core.framework.types import DataType
from cyxla.forking import new_lock

Array = np.ndarray[Any, Any]


class Ref:
    """Mutable value, passed along reference edges.

    An array that was read is never modified afterwards. In-place updates go through `writable`, which copies the array
    if a reader may still hold it (copy on write).

    Attributes
    ----------
    value : ndarray or None
        Current value; None until the first assignment.
    lock : RLock
        Lock for read-modify-write sequences.
    """

    __slots__ = ("_handed_out", "dtype", "lock", "name", "value")

    def __init__(self, dtype: DataType, value: Array | None = None, name: str = "") -> None:
        self.dtype, self.value, self.name = dtype, value, name
        self.lock = new_lock()
        self._handed_out = True

    @property
    def is_initialized(self) -> bool:
        """True if a value was assigned."""
        return self.value is not None

    def read(self) -> Array | None:
        """Return the value as a snapshot that later updates do not modify."""
        with self.lock:
            self._handed_out = True
            return self.value

    def assign(self, value: Array | None, *, owned: bool = False) -> None:
        """Replace the value; an array without other holders is `owned` and may be updated in place later."""
        with self.lock:
            self.value, self._handed_out = value, not owned

    def writable(self) -> Array:
        """Return the value as an array that may be modified in place while the lock is held."""
        with self.lock:
            if self.value is None:
                raise ValueError("the variable has no value")
            if self._handed_out or not self.value.flags.writeable:
                self.assign(self.value.copy(), owned=True)
            return self.value


class Var(Ref, ResourceBase):
    """Resource variable."""

    __slots__ = ()

    def debug_string(self) -> str:
        """Return the type and shape as text."""
        return f"Var {self.dtype} {'uninitialized' if self.value is None else list(self.value.shape)}"
