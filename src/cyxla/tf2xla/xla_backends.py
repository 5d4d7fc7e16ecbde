"""Compilation devices: the types that their kernels take, and filters of kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from cyxla.core.framework.kernel_def import KernelDef
from cyxla.core.framework.types import COMPLEX, FLOAT8, FLOATING, INT4, INTEGRAL, DataType

OpFilter = Callable[[KernelDef], bool]

XLA_CPU_JIT, XLA_INTERPRETER_JIT = "XLA_CPU_JIT", "XLA_INTERPRETER_JIT"

_QUANTIZED = (DataType.DT_QINT8, DataType.DT_QUINT8, DataType.DT_QINT32)  # no backend has the 16-bit ones
CPU_ALL_TYPES: Final = (*FLOATING, *COMPLEX, *INTEGRAL, *_QUANTIZED, DataType.DT_BOOL, *FLOAT8, *INT4)
GPU_ALL_TYPES: Final = CPU_ALL_TYPES  # as TensorFlow states them for GPUs
EXEC_ALL_TYPES: Final = CPU_ALL_TYPES  # those of the interpreter

_OF_STRINGS: Mapping[str, str] = {"Const": "dtype", "Assert": "T"}


@dataclass(frozen=True)
class XlaBackend:
    """Compilation device.

    Parameters
    ----------
    name : str
        Name of the device type, such as ``"XLA_CPU_JIT"``.
    types : tuple of DataType
        Types that the device supports.
    op_filter : callable, optional
        Filter ``op_filter(kernel_def) -> bool`` that may drop a kernel or change its description.
    """

    name: str
    types: tuple[DataType, ...]
    op_filter: OpFilter | None = None


def cpu_op_filter(kernel_def: KernelDef) -> bool:
    """Accept every kernel, and add strings to the types of those that only pass them on, `Const` and `Assert`."""
    attr = _OF_STRINGS.get(kernel_def.op, "")
    types = kernel_def.constraints.get(attr, (DataType.DT_STRING,))
    if DataType.DT_STRING not in types:
        kernel_def.constraints[attr] = (*types, DataType.DT_STRING)
    return True


def gpu_op_filter(kernel_def: KernelDef) -> bool:
    """Do as `cpu_op_filter`; for backends of packages, since cyxla has no GPU device of its own."""
    return cpu_op_filter(kernel_def)


def exec_op_filter(kernel_def: KernelDef) -> bool:
    """Do as `cpu_op_filter`, for the interpreter."""
    return cpu_op_filter(kernel_def)
