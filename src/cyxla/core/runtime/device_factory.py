"""Factories of devices: one for each type, with a priority."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from cyxla.core.framework.device_base import DeviceBase
from cyxla.core.runtime.device import Device, DeviceSet, full_name
from cyxla.errors import AlreadyExistsError, InvalidArgumentError
from cyxla.forking import new_lock

DEFAULT_PRIORITY = 50
CPU_PRIORITY = 60
MAX_DEVICES = 1024  # of each type


class DeviceFactory(Protocol):
    """Interface of a factory for devices of one type."""

    def list_physical_devices(self) -> list[str]:
        """Return the names of the physical devices, for each of which a session has a device by default."""

    def create_devices(self, device_type: str, count: int) -> list[DeviceBase]:
        """Create the devices of a session, numbered from 0."""


class ThreadPoolDeviceFactory:
    """Factory of CPU devices, which all share the same cores."""

    def list_physical_devices(self) -> list[str]:
        """Return one name, for any number of cores."""
        return ["/physical_device:CPU:0"]

    def create_devices(self, device_type: str, count: int) -> list[DeviceBase]:
        """Create the devices of a session."""
        return [Device(full_name(device_type, k), device_type, description="processor") for k in range(count)]


@dataclass(frozen=True)
class FactoryEntry:
    """A factory with its device type and its priority."""

    device_type: str
    factory: DeviceFactory
    priority: int = DEFAULT_PRIORITY


class DeviceFactoryRegistry:
    """Registry of factories by device type. Safe for any number of threads."""

    def __init__(self) -> None:
        self._entries: dict[str, FactoryEntry] = {}
        self._lock = new_lock()
        self._loaders: list[Callable[[], object]] = []

    @staticmethod
    @lru_cache(maxsize=1)
    def global_() -> DeviceFactoryRegistry:
        """Return the registry of the process, which has the factory of CPUs."""
        registry = DeviceFactoryRegistry()
        registry.register("CPU", ThreadPoolDeviceFactory(), CPU_PRIORITY)
        return registry

    def register(self, device_type: str, factory: DeviceFactory, priority: int = DEFAULT_PRIORITY) -> None:
        """Register a factory; it replaces one of lower priority for the same type.

        Parameters
        ----------
        device_type : str
            Type of the devices.
        factory : DeviceFactory
            Factory of the devices.
        priority : int
            Priority; nodes without a request go to the type of highest priority that has a kernel for them.

        Raises
        ------
        InvalidArgumentError
            The priority is negative.
        AlreadyExistsError
            A factory of this type and priority is already registered.
        """
        if priority < 0:
            raise InvalidArgumentError(
                f"the priority of device type '{device_type}' is {priority}; it must be at least 0"
            )
        with self._lock:
            existing = self._entries.get(device_type)
            if existing is not None and existing.priority == priority:
                raise AlreadyExistsError(
                    f"a factory for '{device_type}' with priority {priority} is already registered"
                )
            if existing is None or existing.priority < priority:
                self._entries[device_type] = FactoryEntry(device_type, factory, priority)

    def add_loader(self, loader: Callable[[], object]) -> None:
        """Add a function that is called once, before the next creation of devices, and may register factories."""
        with self._lock:
            self._loaders.append(loader)

    def unregister(self, device_type: str) -> None:
        """Remove the factory of a type; existing sessions keep their devices."""
        with self._lock:
            self._entries.pop(device_type, None)

    def entries(self) -> list[FactoryEntry]:
        """Return all factories, by descending priority, then by name."""
        with self._lock:
            return sorted(self._entries.values(), key=lambda e: (-e.priority, e.device_type))

    def priorities(self) -> dict[str, int]:
        """Return the priorities by device type."""
        return {entry.device_type: entry.priority for entry in self.entries()}

    def create_devices(self, counts: Mapping[str, int] | None = None) -> DeviceSet:
        """Create the devices of a session.

        Parameters
        ----------
        counts : dict of int, optional
            Number of devices of each type; by default the number of physical devices.

        Raises
        ------
        InvalidArgumentError
            A type has no factory, or a number is negative or above `MAX_DEVICES`.
        """
        self._load()
        entries = {entry.device_type: entry for entry in self.entries()}
        for device_type, count in (counts or {}).items():
            if device_type not in entries:
                raise InvalidArgumentError(
                    f"there is no factory for devices of type '{device_type}'", hint=f"types are {', '.join(entries)}"
                )
            if not 0 <= count <= MAX_DEVICES:
                raise InvalidArgumentError(
                    f"{count} devices of type '{device_type}' were requested; the number must be from 0 to "
                    f"{MAX_DEVICES}"
                )
        devices = []
        for device_type, entry in entries.items():
            count = (counts or {}).get(device_type, len(entry.factory.list_physical_devices()))
            devices += entry.factory.create_devices(device_type, count)
        return DeviceSet(devices, self.priorities())

    def _load(self) -> None:
        with self._lock:
            while self._loaders:
                self._loaders.pop(0)()


def register_device(
    device_type: str,
    factory: DeviceFactory,
    priority: int = DEFAULT_PRIORITY,
    registry: DeviceFactoryRegistry | None = None,
) -> None:
    """Register a factory of devices, by default in the global registry."""
    (registry or DeviceFactoryRegistry.global_()).register(device_type, factory, priority)
