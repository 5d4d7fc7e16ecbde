"""Tensors that a session keeps between runs, named by handles, and the tensors that a step asks it to keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError
from cyxla.forking import new_lock

Array = np.ndarray[Any, Any]
TENSOR_HANDLE = "TensorHandle"  # type name of resource handles of kept tensors


@dataclass(frozen=True)
class SessionMetadata:
    """Name and version of a session, by which kernels can tell sessions of one process apart."""

    name: str
    version: int = 0


class SessionState:
    """Thread-safe table of the tensors that a session keeps, by handle."""

    def __init__(self) -> None:
        self._tensors: dict[str, Array] = {}
        self._numbers = count()
        self._lock = new_lock()

    def __len__(self) -> int:
        return len(self._tensors)

    def new_id(self) -> int:
        """Return a number that no other handle of the session has."""
        return next(self._numbers)

    def add_tensor(self, handle: str, value: Array) -> None:
        """Keep a tensor, which must not change afterwards.

        Raises
        ------
        InvalidArgumentError
            There is a tensor of this handle.
        """
        with self._lock:
            if handle in self._tensors:
                raise InvalidArgumentError(f"Failed to add a tensor with handle '{handle}' to the session store.")
            self._tensors[handle] = value

    def get_tensor(self, handle: str) -> Array:
        """Return a tensor.

        Raises
        ------
        InvalidArgumentError
            There is no tensor of this handle.
        """
        value = self._tensors.get(handle)
        if value is None:
            raise _missing(handle)
        return value

    def delete_tensor(self, handle: str) -> None:
        """Drop a tensor.

        Raises
        ------
        InvalidArgumentError
            There is no tensor of this handle.
        """
        with self._lock:
            if self._tensors.pop(handle, None) is None:
                raise _missing(handle)

    def clear(self) -> None:
        """Drop all tensors."""
        with self._lock:
            self._tensors.clear()


def _missing(handle: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The tensor with handle '{handle}' is not in the session store.",
        hint="fetch its handle in the run that computes it; it may also have been deleted",
    )


class TensorStore:
    """Tensors that a step asks its session to keep, by the name of the node that returns the handle."""

    def __init__(self) -> None:
        self._tensors: dict[str, tuple[str, Array]] = {}
        self._lock = new_lock()

    def add_tensor(self, name: str, number: int, device: str, value: Array) -> str:
        """Register a tensor, and return its handle.

        Raises
        ------
        InvalidArgumentError
            The node has registered a tensor already in this step.
        """
        handle = f"{name};{number};{device}"
        with self._lock:
            if name in self._tensors:
                raise InvalidArgumentError(f"Failed to add a tensor with name '{name}' to the tensor store.")
            self._tensors[name] = (handle, value)
        return handle

    def save_tensors(self, names: Iterable[str], state: SessionState) -> None:
        """Pass the tensors whose handles were fetched, given by the names of their nodes, to the session."""
        for name in dict.fromkeys(names):
            if name in self._tensors:
                state.add_tensor(*self._tensors[name])
