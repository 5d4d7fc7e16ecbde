"""Cells whose value changes: resource variables, and the references of TensorFlow 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.resource_mgr import ResourceBase
from cyxla.core.framework.types import DataType
from cyxla.forking import new_lock

Array = np.ndarray[Any, Any]


class Ref:
    """A value that can be replaced: what flows along a reference edge.

    An array that was read is never changed afterwards: readers keep what they read. Updates in place go through
    `writable`, which copies only what somebody may still hold.

    Attributes
    ----------
    value : ndarray or None
        None until the first assignment.
    lock : RLock
        Held by whoever reads, computes and writes back.
    """

    __slots__ = ("_handed_out", "dtype", "lock", "name", "value")

    def __init__(self, dtype: DataType, value: Array | None = None, name: str = "") -> None:
        self.dtype, self.value, self.name = dtype, value, name
        self.lock = new_lock()
        self._handed_out = True

    @property
    def is_initialized(self) -> bool:
        """Whether a value was assigned."""
        return self.value is not None

    def read(self) -> Array | None:
        """The value; it will not change under the reader."""
        with self.lock:
            self._handed_out = True
            return self.value

    def assign(self, value: Array | None, *, owned: bool = False) -> None:
        """Replace the value; an array that nobody else holds is `owned` and may be updated in place later."""
        with self.lock:
            self.value, self._handed_out = value, not owned

    def writable(self) -> Array:
        """The value as an array that may be changed in place while the lock is held."""
        with self.lock:
            if self.value is None:
                raise ValueError("the variable has no value")
            if self._handed_out or not self.value.flags.writeable:
                self.assign(self.value.copy(), owned=True)
            return self.value


class Var(Ref, ResourceBase):
    """A resource variable."""

    __slots__ = ()

    def debug_string(self) -> str:
        """Type and shape."""
        return f"Var {self.dtype} {'uninitialized' if self.value is None else list(self.value.shape)}"
