"""Registries, nodes and kernels for tests of the framework."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework import (
    DeviceBase,
    KernelRegistry,
    NodeDef,
    OpKernel,
    OpKernelContext,
    OpRegistry,
    StepContext,
    create_op_kernel,
    op,
)
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.node_def import add_defaults_to_node_def
from cyxla.core.framework.types import DataType, as_data_type


class Registries:
    """A registry of ops and one of kernels, separate from the global ones."""

    def __init__(self) -> None:
        self.ops, self.kernels = OpRegistry(), KernelRegistry()

    def op(self, name: str, signature: str, *attrs: str, **flags: Any) -> None:
        """Declare an op without a shape function."""
        op(name, signature, *attrs, shape=None, registry=self.ops, **flags)

    def node(self, name: str, *, complete: bool = True, **attrs: Any) -> NodeDef:
        """Return a node of an op, with attributes as Python values and types in any spelling."""
        op_def = self.ops.look_up_op_def(name)
        inputs = [f"x{i}" for i in range(8)]
        made = NodeDef("probe", name, inputs, "", {k: _attr(k, v) for k, v in attrs.items()})
        if complete:
            add_defaults_to_node_def(made, op_def)
        from cyxla.core.framework.node_def import input_types

        made.input = inputs[: len(input_types(made, op_def))]
        return made

    def make(self, name: str, device: DeviceBase | None = None, **attrs: Any) -> OpKernel:
        """Return the kernel of such a node."""
        return create_op_kernel(device or DeviceBase(), self.node(name, **attrs), ops=self.ops, kernels=self.kernels)


def _attr(name: str, value: Any) -> AttrValue:
    if isinstance(value, AttrValue):
        return value
    if isinstance(value, (list, tuple)):
        return AttrValue("list(type)", tuple(as_data_type(v) for v in value))
    if isinstance(value, bool):
        return AttrValue("bool", value)
    if isinstance(value, int) and not isinstance(value, DataType):
        return AttrValue("int", value)
    if isinstance(value, float):
        return AttrValue("float", value)
    return AttrValue("string", value) if name.startswith("_") or name == "s" else AttrValue("type", as_data_type(value))


def context(kernel: OpKernel, *inputs: Any, step: StepContext | None = None, **facts: Any) -> OpKernelContext:
    """Return a context with these inputs."""
    return OpKernelContext(step or StepContext(), kernel, list(inputs), **facts)
