"""Devices, and the set of them that a session may use."""

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
        Bytes it has for values; 0 says nothing.
    description : str
        What it is made of.
    """

    memory_limit: int = 0
    description: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.incarnation = random.getrandbits(63)  # values sent to an earlier device of this name are not for this one

    @property
    def is_compilation_device(self) -> bool:
        """Whether it exists only for compilers to look kernels up by: nothing is ever placed on it."""
        return is_compilation_type(self.device_type)


def is_compilation_type(device_type: str) -> bool:
    """Whether devices of a type exist only for compilers to look kernels up by."""
    return device_type.endswith(_COMPILATION_SUFFIX)


def full_name(device_type: str, number: int) -> str:
    """The full name of a local device."""
    return f"{LOCAL_PREFIX}/device:{device_type}:{number}"


class DeviceSet:
    """The devices of a session by name, and by how much each type is preferred.

    Parameters
    ----------
    devices : iterable of DeviceBase
        In any order.
    priorities : dict of int, optional
        Of types of devices; 50 where nothing is said.
    """

    def __init__(self, devices: Iterable[DeviceBase], priorities: dict[str, int] | None = None) -> None:
        self._priorities = priorities or {}
        self._devices = sorted(devices, key=lambda d: self._rank(d))
        self._by_name = {device.name: device for device in self._devices}
        if len(self._by_name) < len(self._devices):
            raise InvalidArgumentError("two devices have one name", hint="number them differently")

    def _rank(self, device: DeviceBase) -> tuple[int, str, int]:
        name = device.parsed_name
        return (-self.priority(device.device_type), device.device_type, name.id or 0)

    def priority(self, device_type: str) -> int:
        """How much a type of device is preferred."""
        return self._priorities.get(device_type, 50)

    @property
    def devices(self) -> list[DeviceBase]:
        """All of them, the preferred ones first."""
        return list(self._devices)

    @property
    def placeable(self) -> list[DeviceBase]:
        """Those that nodes may be placed on, the preferred ones first."""
        return [device for device in self._devices if not is_compilation_type(device.device_type)]

    @property
    def types(self) -> list[str]:
        """Types of the devices that nodes may be placed on, the preferred ones first."""
        return list(dict.fromkeys(device.device_type for device in self.placeable))

    def matching(self, name: DeviceName) -> list[DeviceBase]:
        """The devices that nodes may be placed on and that a partial name covers."""
        return [device for device in self.placeable if name.matches(device.parsed_name)]

    def find(self, name: str) -> DeviceBase:
        """A device by its name: full, or any form that covers just one kind of device; then the first.

        Raises
        ------
        InvalidArgumentError
            There is none.
        """
        known = self._by_name.get(name)
        if known is not None:
            return known
        wanted = DeviceName.parse(name)
        found = next((device for device in self._devices if wanted.matches(device.parsed_name)), None)
        if found is None:
            raise InvalidArgumentError(f"there is no device '{name}'", hint=f"devices are {', '.join(self._by_name)}")
        return found

    def names(self) -> list[str]:
        """Full names, the preferred devices first."""
        return [device.name for device in self._devices]

    def __iter__(self) -> Iterator[DeviceBase]:
        return iter(self._devices)

    def __len__(self) -> int:
        return len(self._devices)


def default_device(devices: Sequence[DeviceBase]) -> DeviceBase:
    """The device for nodes that nobody placed.

    Raises
    ------
    InvalidArgumentError
        There is none.
    """
    usable = [device for device in devices if not is_compilation_type(device.device_type)]
    if not usable:
        raise InvalidArgumentError("there is no device to run on", hint="name at least one, such as {'CPU': 1}")
    return usable[0]
