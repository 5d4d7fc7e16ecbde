"""Devices as kernels see them, and the names of devices."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from cyxla.core.framework.attr_value import TensorValue
from cyxla.core.framework.memory.allocators import ANY_MEMORY, Allocator, AllocatorAttributes, AllocatorRegistry
from cyxla.core.framework.resource_mgr import ResourceMgr
from cyxla.errors import InvalidArgumentError

_PART = {
    "job": re.compile(r"/job:(\*|[a-zA-Z][_a-zA-Z0-9]*)"),
    "replica": re.compile(r"/replica:(\*|\d+)"),
    "task": re.compile(r"/task:(\*|\d+)"),
    "device": re.compile(r"/device:(\*|[a-zA-Z][_a-zA-Z0-9]*)(?::(\*|\d+))?"),
    "legacy": re.compile(r"/?(cpu|gpu|CPU|GPU):(\*|\d+)"),
    "local": re.compile(r"/?((?!job:|replica:|task:|device:)[a-zA-Z][_a-zA-Z0-9]*):(\*|\d+)"),
}


@dataclass(frozen=True)
class DeviceName:
    """A full or partial name such as ``/job:localhost/replica:0/task:0/device:CPU:0``; None where it says nothing."""

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    type: str | None = None
    id: int | None = None

    @classmethod
    def parse(cls, text: str) -> DeviceName:
        """Read a name: full, partial, with ``*`` for anything, or in the old short form ``/cpu:0``.

        Raises
        ------
        InvalidArgumentError
            It is not the name of a device.
        """
        name, rest = cls(), text
        while rest and rest != "/":
            match_of_kind = next(((kind, m) for kind, pattern in _PART.items() if (m := pattern.match(rest))), None)
            if match_of_kind is None:
                raise InvalidArgumentError(
                    f"'{text}' is not the name of a device", hint="write it like /job:localhost/task:0/device:CPU:0"
                )
            name, rest = name._with_part(match_of_kind[0], match_of_kind[1].groups()), rest[match_of_kind[1].end() :]
        return name

    def _with_part(self, kind: str, groups: tuple[str | None, ...]) -> DeviceName:
        first, number = (None if text == "*" else text for text in (*groups, None)[:2])
        if kind == "job":
            return replace(self, job=first)
        if kind == "replica":
            return replace(self, replica=None if first is None else int(first))
        if kind == "task":
            return replace(self, task=None if first is None else int(first))
        device_type = first.upper() if first is not None and kind == "legacy" else first
        return replace(self, type=device_type, id=None if number is None else int(number))

    def __str__(self) -> str:
        parts = [
            f"/{kind}:{value}" for kind in ("job", "replica", "task") if (value := getattr(self, kind)) is not None
        ]
        if self.type is not None or self.id is not None:
            parts.append(f"/device:{self.type or '*'}:{'*' if self.id is None else self.id}")
        return "".join(parts)

    @property
    def is_complete(self) -> bool:
        """True if the name identifies a single device."""
        return all(getattr(self, f.name) is not None for f in fields(self))

    def matches(self, full: DeviceName) -> bool:
        """Return True if a full name matches all parts of this name."""
        return all(own is None or own == other_part for own, other_part in self._pairs(full))

    def merge(self, other: DeviceName, *, allow_soft: bool = False) -> DeviceName:
        """Merge two partial names.

        Parameters
        ----------
        other : DeviceName
            The other name.
        allow_soft : bool
            Drop type and number where they contradict each other, instead of an error.

        Raises
        ------
        InvalidArgumentError
            They contradict each other.
        """
        for part, (own, other_part) in zip(fields(self), self._pairs(other), strict=True):
            if own is None or other_part is None or own == other_part:
                continue
            if not allow_soft or part.name not in ("type", "id"):
                raise InvalidArgumentError(
                    f"devices of different {part.name}s cannot be merged: '{self}' and '{other}'",
                    hint="request only one of them",
                )
            soft = replace(self, id=None) if part.name == "id" else replace(self, type=None, id=None)
            rest = replace(other, id=None) if part.name == "id" else replace(other, type=None, id=None)
            return soft.merge(rest)
        return other.override(self)

    def override(self, stronger: DeviceName) -> DeviceName:
        """Return this name with the parts that another name sets replaced by those of the other.

        Parameters
        ----------
        stronger : DeviceName
            Name whose parts take precedence.
        """
        stronger_parts = {f.name: getattr(stronger, f.name) for f in fields(stronger)}
        return replace(self, **{name: value for name, value in stronger_parts.items() if value is not None})

    def _pairs(self, other: DeviceName) -> list[tuple[Any, Any]]:
        return [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]


@dataclass(eq=False)
class DeviceBase:
    """A device as far as kernels need to know it.

    Parameters
    ----------
    name : str
        Full name, such as ``/job:localhost/replica:0/task:0/device:CPU:0``.
    device_type : str
        ``"CPU"`` or another type that kernels are registered for.
    resource_manager : ResourceMgr
        Resources of this device.
    thread_pool : ThreadPool, optional
        Thread pool for parallel work of kernels; see `cyxla.core.framework.step.thread_pool`.
    allocator : Allocator, optional
        Allocator of the device's memory; that of the host by default.
    device_context : optional
        Queue or stream of a device that has one.
    incarnation : int
        Differs between lives of a device of one name.
    """

    name: str = "/job:localhost/replica:0/task:0/device:CPU:0"
    device_type: str = "CPU"
    resource_manager: ResourceMgr = field(default_factory=ResourceMgr)
    thread_pool: Any = None
    incarnation: int = 1
    allocator: Allocator | None = None
    device_context: Any = None

    def __post_init__(self) -> None:
        self.parsed_name = DeviceName.parse(self.name)

    def get_allocator(self, attributes: AllocatorAttributes = ANY_MEMORY) -> Allocator:
        """Return the allocator for memory with some attributes."""
        if self.allocator is None or attributes.on_host:
            return AllocatorRegistry.global_().get_allocator()
        return self.allocator

    def make_tensor(self, value: TensorValue) -> np.ndarray[Any, Any]:
        """A constant as a value on this device: never to be written to."""
        array = value.array.view()
        array.flags.writeable = False
        return array
