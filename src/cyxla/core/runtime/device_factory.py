"""What makes the devices of a session: one factory for each type of device, with a priority."""

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
MAX_DEVICES = 1024  # of one type


class DeviceFactory(Protocol):
    """Makes the devices of one type."""

    def list_physical_devices(self) -> list[str]:
        """Names of the hardware there is, one for each device made by default."""

    def create_devices(self, device_type: str, count: int) -> list[DeviceBase]:
        """New devices for one session, numbered from 0."""


class ThreadPoolDeviceFactory:
    """Processors: any number of devices that all run on the same cores."""

    def list_physical_devices(self) -> list[str]:
        """One, whatever the number of cores."""
        return ["/physical_device:CPU:0"]

    def create_devices(self, device_type: str, count: int) -> list[DeviceBase]:
        """New devices for one session."""
        return [Device(full_name(device_type, k), device_type, description="processor") for k in range(count)]


@dataclass(frozen=True)
class FactoryEntry:
    """A factory with the type of its devices and its priority."""

    device_type: str
    factory: DeviceFactory
    priority: int = DEFAULT_PRIORITY


class DeviceFactoryRegistry:
    """Factories by type of device. Safe for any number of threads."""

    def __init__(self) -> None:
        self._entries: dict[str, FactoryEntry] = {}
        self._lock = new_lock()
        self._loaders: list[Callable[[], object]] = []

    @staticmethod
    @lru_cache(maxsize=1)
    def global_() -> DeviceFactoryRegistry:
        """The registry of the process, which knows processors."""
        registry = DeviceFactoryRegistry()
        registry.register("CPU", ThreadPoolDeviceFactory(), CPU_PRIORITY)
        return registry

    def register(self, device_type: str, factory: DeviceFactory, priority: int = DEFAULT_PRIORITY) -> None:
        """Add a factory; one of higher priority replaces that of the same type.

        Parameters
        ----------
        device_type : str
            Type of its devices.
        factory : DeviceFactory
            Makes them.
        priority : int
            Nodes that ask for no device go to the type of highest priority that has a kernel for them.

        Raises
        ------
        InvalidArgumentError
            The priority is negative.
        AlreadyExistsError
            There is a factory of this type and priority.
        """
        if priority < 0:
            raise InvalidArgumentError(f"the priority of device type '{device_type}' is {priority}; 0 is the least")
        with self._lock:
            known = self._entries.get(device_type)
            if known is not None and known.priority == priority:
                raise AlreadyExistsError(f"there is a factory for '{device_type}' with priority {priority} already")
            if known is None or known.priority < priority:
                self._entries[device_type] = FactoryEntry(device_type, factory, priority)

    def add_loader(self, loader: Callable[[], object]) -> None:
        """Call a function before devices are made the next time: it may register further factories."""
        with self._lock:
            self._loaders.append(loader)

    def unregister(self, device_type: str) -> None:
        """Forget the factory of a type; sessions that exist keep their devices."""
        with self._lock:
            self._entries.pop(device_type, None)

    def entries(self) -> list[FactoryEntry]:
        """All factories, the highest priority first, then by name."""
        with self._lock:
            return sorted(self._entries.values(), key=lambda e: (-e.priority, e.device_type))

    def priorities(self) -> dict[str, int]:
        """Priorities by type."""
        return {entry.device_type: entry.priority for entry in self.entries()}

    def create_devices(self, counts: Mapping[str, int] | None = None) -> DeviceSet:
        """New devices for a session.

        Parameters
        ----------
        counts : dict of int, optional
            How many of each type; as many as there is hardware where nothing is said.

        Raises
        ------
        InvalidArgumentError
            A type without factory, or a number that is negative or absurd.
        """
        self._load()
        entries = {entry.device_type: entry for entry in self.entries()}
        for device_type, count in (counts or {}).items():
            if device_type not in entries:
                raise InvalidArgumentError(
                    f"there is no factory for devices of type '{device_type}'", hint=f"types are {', '.join(entries)}"
                )
            if not 0 <= count <= MAX_DEVICES:
                raise InvalidArgumentError(f"{count} devices of type '{device_type}'; 0 to {MAX_DEVICES} are possible")
        made = []
        for device_type, entry in entries.items():
            count = (counts or {}).get(device_type, len(entry.factory.list_physical_devices()))
            made += entry.factory.create_devices(device_type, count)
        return DeviceSet(made, self.priorities())

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
    """Register a factory of devices; the global registry by default."""
    (registry or DeviceFactoryRegistry.global_()).register(device_type, factory, priority)
