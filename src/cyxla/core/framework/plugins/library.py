"""Registration of the contents of a library in C."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from cyxla.core.framework.declarations.op import OpRegistry, op
from cyxla.core.framework.kernel_def import Name, as_types
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.plugins import VERSIONS, interface, version_1
from cyxla.core.framework.plugins.interface import text
from cyxla.core.framework.plugins.kernels import make_kernel
from cyxla.core.framework.plugins.shape_functions import NativeShapeFunction
from cyxla.core.framework.plugins.xla_kernels import XLA_KERNELS, NativeXlaKernelRow
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError

_PART = re.compile(r"""(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^;'"])+""")  # up to a semicolon outside of quotes
_FLAGS = {1: "stateful", 2: "commutative", 4: "aggregate", 8: "allows_uninitialized_input"}


def load_native(path: Path, ops: OpRegistry, kernels: KernelRegistry) -> None:
    """Load a library, and register its ops and kernels.

    Its XLA kernels are registered if `ops` is the global registry.

    Raises
    ------
    InvalidArgumentError
        The file is not a library of a supported version, or a declaration is invalid.
    """
    try:
        library = ctypes.CDLL(str(path))
        entry = library.cyxla_kernel_plugin
    except (OSError, AttributeError) as error:
        raise InvalidArgumentError(f"{path} is not a kernel library: {error}") from None
    entry.restype = ctypes.POINTER(ctypes.c_int32)
    contents = entry()
    version = contents[0] if contents else 0
    if version not in VERSIONS:
        raise InvalidArgumentError(f"{path} has the version {version} of the interface, which cannot be loaded")
    load = _load_version_1 if version == 1 else _load_version_2
    load(path, library, ctypes.addressof(contents.contents), ops, kernels)


def _load_version_1(path: Path, library: Any, address: int, ops: OpRegistry, kernels: KernelRegistry) -> None:
    plugin = version_1.Plugin.from_address(address)
    for row in plugin.ops[: plugin.num_ops]:
        op(text(row.name), text(row.signature), *_split_text(row.attrs), doc=text(row.doc), shape=None, registry=ops)
    for row in plugin.kernels[: plugin.num_kernels]:
        factory = partial(version_1.NativeKernel, compute=row.compute, library=library)
        kernels.register(_chain(row).build(), factory, f"{path.name}:{text(row.op)}")


def _load_version_2(path: Path, library: Any, address: int, ops: OpRegistry, kernels: KernelRegistry) -> None:
    plugin = interface.Plugin.from_address(address)
    shapes: dict[str, NativeShapeFunction] = {}
    for row in interface.rows(interface.Op, plugin.ops, plugin.op_bytes, plugin.num_ops):
        if row.shape:
            shapes[text(row.name)] = NativeShapeFunction(row, library)
        _register_op(row, shapes.get(text(row.name)), ops)
    for row in interface.rows(interface.Kernel, plugin.kernels, plugin.kernel_bytes, plugin.num_kernels):
        if bool(row.compute) == bool(row.compute_async):
            raise InvalidArgumentError(
                f"{path.name}: a kernel of {text(row.op)} needs one of compute and compute_async, and not both"
            )
        factory = partial(make_kernel, row=row, shape_function=shapes.get(text(row.op)), library=library)
        chain = _chain(row).host_memory(*_split_text(row.host_memory))
        kernels.register(chain.build(), factory, f"{path.name}:{text(row.op)}")
    if ops is OpRegistry.global_():
        rows = interface.rows(interface.XlaKernel, plugin.xla_kernels, plugin.xla_kernel_bytes, plugin.num_xla_kernels)
        for row in rows:
            XLA_KERNELS.register(_xla_kernel(path, row, shapes.get(text(row.op)), library))


def _register_op(row: interface.Op, shape: NativeShapeFunction | None, ops: OpRegistry) -> None:
    unknown = row.flags & ~sum(_FLAGS)
    if unknown:
        raise InvalidArgumentError(f"op {text(row.name)} has unknown flags: {unknown:#x}")
    flags: dict[str, Any] = {name: True for bit, name in _FLAGS.items() if row.flags & bit}
    attrs = _split_text(row.attrs)
    op(text(row.name), text(row.signature), *attrs, doc=text(row.doc), shape=shape, registry=ops, **flags)


def _xla_kernel(path: Path, row: Any, shape: NativeShapeFunction | None, library: Any) -> NativeXlaKernelRow:
    if not row.emit:
        raise InvalidArgumentError(f"{path.name}: the XLA kernel of {text(row.op)} has no function emit")
    constants = tuple(_split_text(row.constants))
    return NativeXlaKernelRow(text(row.op), dict(_types(row.types)), constants, row, shape, library)


def _split_text(value: bytes | None) -> list[str]:
    return [part.strip() for part in _PART.findall(text(value)) if part.strip()]


def _chain(row: Any) -> Name:
    chain = Name(text(row.op)).device(text(row.device)).label(text(row.label)).priority(row.priority)
    for attr, types in _types(row.types):
        chain.type_constraint(attr, types)
    return chain


def _types(value: bytes | None) -> Iterable[tuple[str, tuple[DataType, ...]]]:
    """Return the types of each attribute in a text such as ``T=float,double; N=int32``."""
    for part in _split_text(value):
        attr, _, types = part.partition("=")
        yield attr.strip(), as_types([t.strip() for t in types.split(",")])
