"""The compilation device of each type of device, and the policy by which nodes placed there are compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum

from cyxla.errors import NotFoundError
from cyxla.forking import new_lock

XLA_CPU, XLA_INTERPRETER = "XLA_CPU", "XLA_INTERPRETER"


class Policy(Enum):
    """Condition under which nodes of a device are clustered."""

    ALWAYS = "always"
    IF_ENABLED_GLOBALLY = "if clustering is on"
    IF_REQUESTED = "if the node requests it"


@dataclass(frozen=True)
class ClusterFilter:
    """Kinds of ops that may be clustered although compiling them changes the behaviour or speed of a program.

    All of them are off for CPUs.
    """

    stateful_rng: bool = False
    control_trigger: bool = False
    stacks: bool = False
    tensor_arrays: bool = False
    variants: bool = False
    assertions: bool = False  # Assert and CheckNumerics, which compiled code leaves out
    slow: bool = False
    inaccurate: bool = False
    growing: bool = False  # lists and arrays whose length may change: compiled ones keep theirs
    resource_producers: bool = False
    dynamic_shapes: bool = False  # compiled code gives results of their greatest size
    collectives: bool = False  # a compiled program runs on one device, and the others of the group would wait

    @classmethod
    def all(cls) -> ClusterFilter:
        """Return a filter that admits all ops but collectives, and those with handles or dynamic shapes as results."""
        return cls(*(True,) * 9)

    def __or__(self, other: ClusterFilter) -> ClusterFilter:
        return ClusterFilter(*(getattr(self, f.name) or getattr(other, f.name) for f in fields(self)))


ENCLOSING = ClusterFilter(stacks=True, tensor_arrays=True, variants=True, resource_producers=True)
"""Kinds admitted in addition if one cluster holds a whole group; see `analysis.indivisible_groups`."""


@dataclass(frozen=True)
class DeviceInfo:
    """The compilation device of a type of device.

    Parameters
    ----------
    compilation_device : str
        Device type under which the XLA kernels are registered.
    policy : Policy
        Condition under which nodes are clustered.
    platform : str
        Platform on which compiled code runs.
    filter : ClusterFilter
        Kinds of ops that are clustered.
    """

    compilation_device: str
    policy: Policy
    platform: str
    filter: ClusterFilter = field(default_factory=ClusterFilter)


def compilation_device_of(platform: str) -> str:
    """Return the name of the compilation device of a platform."""
    return f"XLA_{platform.upper()}_JIT"


class DeviceInfoRegistry:
    """Registry of compilation devices by device type. Safe for any number of threads."""

    def __init__(self) -> None:
        self._infos: dict[str, DeviceInfo] = {}
        self._lock = new_lock()

    def register(self, device_type: str, info: DeviceInfo) -> None:
        """Register the compilation device of a type of device."""
        with self._lock:
            self._infos[device_type] = info

    def unregister(self, device_type: str) -> None:
        """Remove a type of device."""
        with self._lock:
            self._infos.pop(device_type, None)

    def find(self, device_type: str, *, platform: str = "cpu") -> DeviceInfo | None:
        """Return the compilation device of a type of device, or None.

        That of ``CPU`` belongs to the platform that the session names.
        """
        if device_type == "CPU":
            return DeviceInfo(compilation_device_of(platform), Policy.IF_REQUESTED, platform)
        with self._lock:
            return self._infos.get(device_type)

    def known(self) -> Mapping[str, DeviceInfo]:
        """Return a copy of all registrations."""
        with self._lock:
            return dict(self._infos)


REGISTRY = DeviceInfoRegistry()


def get_compilation_device(device_type: str) -> DeviceInfo:
    """Return the compilation device of a type of device.

    Raises
    ------
    NotFoundError
        Nodes on devices of this type are never compiled.
    """
    info = REGISTRY.find(device_type)
    if info is None:
        raise NotFoundError(f"devices of type '{device_type}' have no compilation device")
    return info
