"""Memory layouts of traced arrays, represented by NumPy arrays whose elements are never read.

Whether NumPy shares memory, say in ``x[..., 0].reshape(2, -1)``, depends on strides. Layouts are NumPy arrays over
memory that is not allocated: views of them are taken as of any array, and reshapes that would copy fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from cyxla.numpy.tracing.results.promotion import Dtype

Memory: TypeAlias = np.ndarray[Any, Any]


def memory_of(sizes: Sequence[int], dtype: Dtype, strides: Sequence[int]) -> Memory:
    """Return an array of these strides in bytes."""
    return as_strided(np.empty(1, dtype), sizes, strides)


def row_major(sizes: Sequence[int], dtype: Dtype) -> Memory:
    """Return a contiguous array in row-major order."""
    steps = [dtype.itemsize]
    for n in reversed(sizes[1:]):
        steps.append(steps[-1] * max(n, 1))
    return memory_of(sizes, dtype, steps[::-1] if sizes else ())


def column_major(sizes: Sequence[int], dtype: Dtype) -> Memory:
    """Return a contiguous array in column-major order."""
    return row_major(sizes[::-1], dtype).transpose()


def reshape_view(memory: Memory, sizes: Sequence[int], order: Any = "C") -> Memory | None:
    """Return a view of another shape; None if NumPy would have to copy."""
    try:
        return np.reshape(memory, tuple(sizes), order=order, copy=False)
    except ValueError:
        return None


def dense(sizes: Sequence[int], dtype: Dtype, axes: Sequence[int]) -> Memory:
    """Return a contiguous array whose dimension ``axes[0]`` is the outermost."""
    return row_major([sizes[d] for d in axes], dtype).transpose(np.argsort(axes))


def is_column_major(memory: Memory) -> bool:
    """Return True if an array is column-major but not row-major as well."""
    return bool(memory.flags.f_contiguous and not memory.flags.c_contiguous)


def common_axes(memories: Sequence[Memory], rank: int, *, joined: bool = False) -> tuple[int, ...] | None:
    """Return the order of dimensions, outermost first, of NumPy's element-wise results; None for row-major order.

    Of two dimensions the one with the larger strides is the outer one. If operands disagree, or no operand has both,
    the order is that of the result's shape.

    Parameters
    ----------
    memories : sequence of Memory
        Layouts of the operands, which are broadcast to the result.
    rank : int
        Rank of the result.
    joined : bool
        Whether the operands are concatenated along a dimension: NumPy then compares from the first dimension on, else
        from the last one.
    """
    steps = [_result_strides(memory, rank) for memory in memories]
    axes: list[int] = []
    for axis in range(rank) if joined else reversed(range(rank)):
        position = len(axes)
        for k in reversed(range(len(axes))):
            votes = [(abs(s[axis]) > abs(s[axes[k]])) is joined for s in steps if s[axis] and s[axes[k]]]
            if votes and not all(votes):
                break
            position = k if votes else position
        axes.insert(position, axis)
    order = axes if joined else axes[::-1]
    return tuple(order) if order != list(range(rank)) else None


def _result_strides(memory: Memory, rank: int) -> list[int]:
    """Return the strides along the dimensions of a result; 0 for broadcast ones."""
    strides = [0 if n == 1 else s for n, s in zip(memory.shape, memory.strides, strict=True)]
    return [0] * (rank - len(strides)) + strides
