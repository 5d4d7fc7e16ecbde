"""Allocators of arrays, the properties of memory that kernels ask for, and the registry of allocators by priority."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from cyxla.errors import AlreadyExistsError, NotFoundError
from cyxla.forking import new_lock

Array = np.ndarray[Any, Any]
_FLAGS = ("on_host", "nic_compatible", "gpu_compatible")  # bits of `AllocatorAttributes.value`, lowest first
DEFAULT_PRIORITY = 100


@dataclass(frozen=True)
class AllocatorAttributes:
    """Properties of the memory of a value.

    Parameters
    ----------
    on_host : bool
        True for memory of the host, even if the kernel runs on another device.
    nic_compatible, gpu_compatible : bool
        True for memory that network cards or GPUs can access.
    scope_id : int
        Number of a shared allocation that the value is a part of; 0 for none.
    """

    on_host: bool = False
    nic_compatible: bool = False
    gpu_compatible: bool = False
    scope_id: int = 0

    @property
    def value(self) -> int:
        """The flags as bits."""
        return sum(getattr(self, name) << bit for bit, name in enumerate(_FLAGS))

    def merge(self, other: AllocatorAttributes) -> AllocatorAttributes:
        """Return attributes with the flags of both."""
        flags = {name: getattr(self, name) or getattr(other, name) for name in _FLAGS}
        return AllocatorAttributes(**flags, scope_id=self.scope_id or other.scope_id)

    def is_equal_or_less_restrictive_than(self, other: AllocatorAttributes) -> bool:
        """Return True if memory with the other attributes serves this request, too."""
        return (self.value | other.value) == other.value


ANY_MEMORY = AllocatorAttributes()
HOST_MEMORY = AllocatorAttributes(on_host=True)


class Allocator:
    """Allocator of arrays in NumPy's memory; subclasses use other memory.

    Parameters
    ----------
    name : str
        Name for listings.

    Attributes
    ----------
    allocations, bytes_allocated, largest : int
        Number of allocations so far, their total size, and the size of the largest.
    """

    def __init__(self, name: str = "cpu") -> None:
        self.name = name
        self.allocations = self.bytes_allocated = self.largest = 0
        self._lock = new_lock()

    def allocate(self, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
        """Allocate an uninitialised array.

        Raises
        ------
        MemoryError
            There is not enough memory.
        """
        array = self.make_array(dtype, shape)
        with self._lock:
            self.allocations += 1
            self.bytes_allocated += array.nbytes
            self.largest = max(self.largest, array.nbytes)
        return array

    def make_array(self, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
        """Make the array of an allocation; for subclasses."""
        return np.empty(tuple(shape), dtype)


class AllocatorRegistry:
    """Allocators of the host; the one of the highest priority serves all devices that have none of their own."""

    def __init__(self) -> None:
        self._factories: dict[tuple[str, int], Callable[[], Allocator]] = {}
        self._chosen: Allocator | None = None
        self._lock = new_lock()

    @staticmethod
    @lru_cache(maxsize=1)
    def global_() -> AllocatorRegistry:
        """Return the registry of the process, which has NumPy's allocator."""
        registry = AllocatorRegistry()
        registry.register("DefaultCPUAllocator", Allocator, DEFAULT_PRIORITY)
        return registry

    def register(self, name: str, factory: Callable[[], Allocator], priority: int = DEFAULT_PRIORITY) -> None:
        """Register a factory of an allocator, which is created at first use.

        Raises
        ------
        AlreadyExistsError
            A factory of this name and priority is registered.
        """
        with self._lock:
            if (name, priority) in self._factories:
                raise AlreadyExistsError(f"an allocator '{name}' of priority {priority} is already registered")
            self._factories[name, priority] = factory
            self._chosen = None

    def unregister(self, name: str) -> None:
        """Remove the factories of a name."""
        with self._lock:
            self._factories = {key: made for key, made in self._factories.items() if key[0] != name}
            self._chosen = None

    def names(self) -> list[str]:
        """Return the names of the allocators by descending priority."""
        return [name for name, _ in sorted(self._factories, key=lambda key: -key[1])]

    def get_allocator(self) -> Allocator:
        """Return the allocator of the highest priority.

        Raises
        ------
        NotFoundError
            None is registered.
        """
        chosen = self._chosen
        if chosen is None:
            with self._lock:
                if not self._factories:
                    raise NotFoundError("no allocator is registered")
                best = max(self._factories, key=lambda key: key[1])
                chosen = self._chosen = self._factories[best]()
        return chosen
