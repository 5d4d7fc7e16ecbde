"""Descriptions of kernels: op, device, supported types; and the chain of calls that builds them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Self

from cyxla.core.framework.types import DataType, as_data_type
from cyxla.errors import InvalidArgumentError


class MemoryType(IntEnum):
    """Memory of a value: that of the device, or host memory."""

    DEVICE = 0
    HOST = 1


@dataclass(frozen=True)
class KernelDef:
    """A kernel's registration: it serves `op` on `device_type` where every attribute of `constraints` is allowed.

    Parameters
    ----------
    op, device_type : str
        The op, and a type of device such as ``"CPU"``; ``"DEFAULT"`` serves every device that has none of its own.
    constraints : dict of tuples of DataType
        Allowed types per type attribute; of a ``list(type)`` every element must be allowed.
    host_memory : tuple of str
        Inputs and outputs that live in host memory.
    label : str
        Chosen only by nodes whose attribute ``_kernel`` is this label.
    priority : int
        The highest wins where several match.
    """

    op: str
    device_type: str
    constraints: dict[str, tuple[DataType, ...]] = field(default_factory=dict)
    host_memory: tuple[str, ...] = ()
    label: str = ""
    priority: int = 0

    def __str__(self) -> str:
        """One line, as the command line prints it."""
        parts = [f"device='{self.device_type}'"]
        parts += [f"{name} in [{', '.join(t.name for t in types)}]" for name, types in self.constraints.items()]
        parts += [f"host_memory={list(self.host_memory)}"] if self.host_memory else []
        parts += [f"label='{self.label}'"] if self.label else []
        parts += [f"priority={self.priority}"] if self.priority else []
        return "; ".join(parts)


def as_types(types: Any) -> tuple[DataType, ...]:
    """A tuple of data types, from one type or several in any spelling."""
    if isinstance(types, Iterable) and not isinstance(types, str):
        return tuple(as_data_type(t) for t in types)
    return (as_data_type(types),)


class Name:
    """Start of a chain that describes a kernel: ``Name("Relu").device("CPU").type_constraint("T", np.float32)``.

    Every setter changes the chain and returns it; `build` makes the `KernelDef`.
    """

    def __init__(self, op: str) -> None:
        self.op = op
        self._device = ""
        self._constraints: dict[str, tuple[DataType, ...]] = {}
        self._host_memory: list[str] = []
        self._label = ""
        self._priority = 0

    def device(self, device_type: str) -> Self:
        """Serve this type of device."""
        self._device = device_type
        return self

    def type_constraint(self, attr: str, types: Any) -> Self:
        """Serve only these types (one or several, in any spelling) of a type attribute."""
        if attr in self._constraints:
            raise InvalidArgumentError(f"kernel of {self.op}: attribute '{attr}' has two constraints")
        self._constraints[attr] = as_types(types)
        return self

    def host_memory(self, *args: str) -> Self:
        """Keep these inputs and outputs in host memory."""
        self._host_memory += args
        return self

    def label(self, label: str) -> Self:
        """Serve only nodes that ask for this label."""
        if self._label:
            raise InvalidArgumentError(
                f"kernel of {self.op}: labels '{self._label}' and '{label}'; only one is possible"
            )
        self._label = label
        return self

    def priority(self, priority: int) -> Self:
        """Win over matching kernels of lower priority."""
        self._priority = priority
        return self

    def build(self) -> KernelDef:
        """The description.

        Raises
        ------
        InvalidArgumentError
            No op or no device was named.
        """
        if not self.op or not self._device:
            missing_field = "device" if self.op else "op"
            raise InvalidArgumentError(f"kernel of '{self.op}': no {missing_field} is named", hint='add .device("CPU")')
        return KernelDef(
            self.op, self._device, dict(self._constraints), tuple(self._host_memory), self._label, self._priority
        )
