"""Which compilation device stands behind a device, and when what is placed there is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum

from cyxla.errors import NotFoundError
from cyxla.forking import new_lock

XLA_CPU, XLA_INTERPRETER = "XLA_CPU", "XLA_INTERPRETER"


class Policy(Enum):
    """When nodes of a device are clustered."""

    ALWAYS = "always"
    IF_ENABLED_GLOBALLY = "if clustering is on"
    IF_REQUESTED = "if the node asks for it"


@dataclass(frozen=True)
class ClusterFilter:
    """Which ops that could be compiled are clustered all the same.

    Each of these is off for processors: compiling them changes what a program does or does not pay.
    """

    stateful_rng: bool = False
    control_trigger: bool = False
    stacks: bool = False
    tensor_arrays: bool = False
    variants: bool = False
    assertions: bool = False  # Assert and CheckNumerics, which compiled code leaves out
    slow: bool = False
    inaccurate: bool = False
    resource_producers: bool = False
    dynamic_shapes: bool = False  # compiled code gives results of their greatest size

    @classmethod
    def all(cls) -> ClusterFilter:
        """Everything that can be compiled as it is, but for what makes handles."""
        return cls(*(True,) * 8)

    def __or__(self, other: ClusterFilter) -> ClusterFilter:
        return ClusterFilter(*(getattr(self, f.name) or getattr(other, f.name) for f in fields(self)))


ENCLOSING = ClusterFilter(stacks=True, tensor_arrays=True, variants=True, resource_producers=True)
"""What may be clustered besides where one cluster has all that touches it; see `analysis.indivisible_groups`."""


@dataclass(frozen=True)
class DeviceInfo:
    """How a type of device compiles.

    Parameters
    ----------
    compilation_device : str
        The type under which XLA kernels are registered.
    policy : Policy
    filter : ClusterFilter
    platform : str
        What compiled code runs on.
    """

    compilation_device: str
    policy: Policy
    platform: str
    filter: ClusterFilter = field(default_factory=ClusterFilter)


def compilation_device_of(platform: str) -> str:
    """Name of the compilation device of a platform."""
    return f"XLA_{platform.upper()}_JIT"


class DeviceInfoRegistry:
    """What is known of types of devices. Safe for any number of threads."""

    def __init__(self) -> None:
        self._infos: dict[str, DeviceInfo] = {}
        self._lock = new_lock()

    def register(self, device_type: str, info: DeviceInfo) -> None:
        """Say how a type of device compiles."""
        with self._lock:
            self._infos[device_type] = info

    def unregister(self, device_type: str) -> None:
        """Forget a type of device."""
        with self._lock:
            self._infos.pop(device_type, None)

    def find(self, device_type: str, *, platform: str = "cpu") -> DeviceInfo | None:
        """How a type of device compiles: ``CPU`` for the platform that the session names; None if it never does."""
        if device_type == "CPU":
            return DeviceInfo(compilation_device_of(platform), Policy.IF_REQUESTED, platform)
        with self._lock:
            return self._infos.get(device_type)

    def known(self) -> Mapping[str, DeviceInfo]:
        """Everything that was registered."""
        with self._lock:
            return dict(self._infos)


REGISTRY = DeviceInfoRegistry()


def get_compilation_device(device_type: str) -> DeviceInfo:
    """How a type of device compiles.

    Raises
    ------
    NotFoundError
        Nothing on it is ever compiled.
    """
    info = REGISTRY.find(device_type)
    if info is None:
        raise NotFoundError(f"devices of type '{device_type}' have no compilation device")
    return info
