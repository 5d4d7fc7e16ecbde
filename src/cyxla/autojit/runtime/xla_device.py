"""Devices on which all nodes are compiled: ``XLA_CPU`` and ``XLA_INTERPRETER``, and those of plugins.

Nodes placed there are clustered at every level. A node in no cluster is compiled by itself when it runs.
"""

from __future__ import annotations

from dataclasses import replace

from cyxla.autojit.devices import (
    REGISTRY,
    XLA_CPU,
    XLA_INTERPRETER,
    ClusterFilter,
    DeviceInfo,
    Policy,
    compilation_device_of,
)
from cyxla.autojit.flags import current
from cyxla.core.framework.device_base import DeviceBase
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.registration_batch import directly
from cyxla.core.runtime.device import Device, full_name
from cyxla.core.runtime.device_factory import DEFAULT_PRIORITY, DeviceFactoryRegistry
from cyxla.forking import new_lock

INTERPRETER_PRIORITY = 40
# Ops that such a device runs with the CPU's kernels: they move values, produce handles, and call functions.
HOST_OPS = frozenset(
    prefix + op for prefix in ("", "Ref") for op in ("Switch", "Merge", "Enter", "Exit", "NextIteration", "Identity")
) | {
    "_Arg", "_Retval", "_DeviceArg", "_DeviceRetval", "_Send", "_Recv", "_HostSend", "_HostRecv", "Const", "NoOp",
    "ControlTrigger", "LoopCond", "IdentityN", "VarHandleOp", "_VarHandlesOp", "VarIsInitializedOp", "ReadVariableOp",
    "AssignVariableOp", "DestroyResourceOp", "PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "Case",
    "StatelessCase", "While", "StatelessWhile", "Placeholder", "PlaceholderWithDefault", "Assert",
}  # fmt: skip
_LOCK = new_lock()
_with_kernels: set[tuple[str, int]] = set()


class XlaDeviceFactory:
    """Factory of devices on which all nodes are compiled.

    Parameters
    ----------
    jit_device : str
        Compilation device, under which the XLA kernels are registered.
    platform : str
        Platform on which compiled code runs.
    always : bool
        True if every session has such a device; False to create it only with ``--tf_xla_enable_xla_devices``.
    """

    def __init__(self, jit_device: str, platform: str, *, always: bool = True) -> None:
        self.jit_device, self.platform, self.always = jit_device, platform, always

    def list_physical_devices(self) -> list[str]:
        """Return the names of the physical devices: one, or none if the device is not enabled."""
        if self.always or current().tf_xla_enable_xla_devices:
            return [f"/physical_device:{self.platform}:0"]
        return []

    def create_devices(self, device_type: str, count: int) -> list[DeviceBase]:
        """Create devices for one session; the first call registers their kernels."""
        if count:
            register_device_kernels(device_type, self.jit_device)
        info = DeviceInfo(self.jit_device, Policy.ALWAYS, self.platform, ClusterFilter.all())
        REGISTRY.register(device_type, info)
        text = f"everything is compiled for {self.platform}"
        return [Device(full_name(device_type, k), device_type, description=text) for k in range(count)]


def register_device_kernels(device_type: str, jit_device: str, kernels: KernelRegistry | None = None) -> int:
    """Register kernels for all ops that can be compiled for a type of device, and return their number."""
    from cyxla.autojit.runtime.xla_on_demand import register_on_demand
    from cyxla.autojit.runtime.xla_ops import register_kernels

    target = KernelRegistry.global_() if kernels is None else kernels
    with _LOCK:
        if (device_type, id(target)) in _with_kernels:
            return 0
        _with_kernels.add((device_type, id(target)))
    with directly():
        register_kernels(device_type)
        count = _register_host_kernels(device_type, target)
        return count + register_on_demand(device_type, jit_device, HOST_OPS, target)


def _register_host_kernels(device_type: str, target: KernelRegistry) -> int:
    count = 0
    for op in sorted(HOST_OPS):
        for row in target.registrations(op):
            if row.kernel_def.device_type == "CPU":
                target.register(replace(row.kernel_def, device_type=device_type), row.factory, row.class_name)
                count += 1
    return count


def register_devices(registry: DeviceFactoryRegistry | None = None) -> None:
    """Add the built-in factories."""
    target = DeviceFactoryRegistry.global_() if registry is None else registry
    registered = {entry.device_type for entry in target.entries()}
    rows = ((XLA_CPU, "cpu", DEFAULT_PRIORITY), (XLA_INTERPRETER, "interpreter", INTERPRETER_PRIORITY))
    for device_type, platform, priority in rows:
        if device_type not in registered:
            factory = XlaDeviceFactory(compilation_device_of(platform), platform, always=False)
            target.register(device_type, factory, priority)
