"""C types of arrays that kernels read and write."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.kernel.kernel import Value


def memory_type(dtype: ElementType) -> str:
    """Return the C type of an array element in memory, which promises no alignment."""
    return f"cyx_mem_{dtype}"


def memory_typedefs(values: Sequence[Value]) -> list[str]:
    """Return the typedefs of the memory types of arrays; the same dtype always gives the same text."""
    dtypes = dict.fromkeys(v.shape.dtype for v in values)
    return [scalar.memory_typedef(memory_type(d), d) for d in dtypes]
