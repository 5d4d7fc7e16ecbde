"""Devices, and the set of devices of a session."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cyxla.core.framework.device_base import DeviceBase, DeviceName
from cyxla.errors import InvalidArgumentError

LOCAL_PREFIX = "/job:localhost/replica:0/task:0"
_COMPILATION_SUFFIX = "_JIT"


@dataclass(eq=False)
class Device(DeviceBase):
    """A device of a session.

    Parameters
    ----------
    memory_limit : int
        Size of its memory in bytes; 0 if unknown.
    description : str
        Description of the hardware.
    """

    memory_limit: int = 0
    description: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.incarnation = random.getrandbits(63)  # distinguishes the device from earlier ones of the same name

    @property
    def is_compilation_device(self) -> bool:
        """True if the device exists only for the look-up of kernels by compilers; no node is placed on it."""
        return is_compilation_type(self.device_type)


def is_compilation_type(device_type: str) -> bool:
    """Return True if devices of a type exist only for the look-up of kernels by compilers."""
    return device_type.endswith(_COMPILATION_SUFFIX)


def full_name(device_type: str, number: int) -> str:
    """Return the full name of a local device."""
    return f"{LOCAL_PREFIX}/device:{device_type}:{number}"


class DeviceSet:
    """The devices of a session by name, with the priority of each type.

    Parameters
    ----------
    devices : iterable of DeviceBase
        Devices in any order.
    priorities : dict of int, optional
        Priorities by device type; the default is 50.
    """

    def __init__(self, devices: Iterable[DeviceBase], priorities: dict[str, int] | None = None) -> None:
        self._priorities = priorities or {}
        self._devices = sorted(devices, key=lambda d: self._rank(d))
        self._by_name = {device.name: device for device in self._devices}
        if len(self._by_name) < len(self._devices):
            raise InvalidArgumentError("two devices have the same name", hint="give them different numbers")

    def _rank(self, device: DeviceBase) -> tuple[int, str, int]:
        name = device.parsed_name
        return (-self.priority(device.device_type), device.device_type, name.id or 0)

    def priority(self, device_type: str) -> int:
        """Return the priority of a type of device."""
        return self._priorities.get(device_type, 50)

    @property
    def devices(self) -> list[DeviceBase]:
        """All devices, by descending priority."""
        return list(self._devices)

    @property
    def placeable(self) -> list[DeviceBase]:
        """The devices on which nodes may be placed, by descending priority."""
        return [device for device in self._devices if not is_compilation_type(device.device_type)]

    @property
    def types(self) -> list[str]:
        """The types of the devices on which nodes may be placed, by descending priority."""
        return list(dict.fromkeys(device.device_type for device in self.placeable))

    def matching(self, name: DeviceName) -> list[DeviceBase]:
        """Return the devices on which nodes may be placed and that match a partial name."""
        return [device for device in self.placeable if name.matches(device.parsed_name)]

    def find(self, name: str) -> DeviceBase:
        """Return the device of a full name, or the first device that matches a partial name.

        Raises
        ------
        InvalidArgumentError
            No device matches.
        """
        exact = self._by_name.get(name)
        if exact is not None:
            return exact
        requested = DeviceName.parse(name)
        match = next((device for device in self._devices if requested.matches(device.parsed_name)), None)
        if match is None:
            raise InvalidArgumentError(f"there is no device '{name}'", hint=f"devices are {', '.join(self._by_name)}")
        return match

    def names(self) -> list[str]:
        """Return the full names of all devices, by descending priority."""
        return [device.name for device in self._devices]

    def __iter__(self) -> Iterator[DeviceBase]:
        return iter(self._devices)

    def __len__(self) -> int:
        return len(self._devices)


def default_device(devices: Sequence[DeviceBase]) -> DeviceBase:
    """Return the device of nodes without a placement.

    Raises
    ------
    InvalidArgumentError
        There is no device.
    """
    usable = [device for device in devices if not is_compilation_type(device.device_type)]
    if not usable:
        raise InvalidArgumentError("there is no device to run on", hint="name at least one, such as {'CPU': 1}")
    return usable[0]
