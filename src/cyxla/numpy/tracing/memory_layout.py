"""How the elements of traced arrays would lie in memory: arrays that NumPy is asked about, and nobody reads.

Whether NumPy shares memory, in ``x[..., 0].reshape(2, -1)`` say, depends on strides. They are those of NumPy's own
arrays over a memory that is not there: parts of these are taken as parts of any array, and what would copy fails first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from cyxla.numpy.tracing.promotion import Dtype

Memory: TypeAlias = np.ndarray[Any, Any]


def memory_of(sizes: Sequence[int], dtype: Dtype, strides: Sequence[int]) -> Memory:
    """Elements that many bytes apart."""
    return as_strided(np.empty(1, dtype), sizes, strides)


def row_major(sizes: Sequence[int], dtype: Dtype) -> Memory:
    """Elements one after the other, the last dimension first."""
    steps = [dtype.itemsize]
    for n in reversed(sizes[1:]):
        steps.append(steps[-1] * max(n, 1))
    return memory_of(sizes, dtype, steps[::-1] if sizes else ())


def column_major(sizes: Sequence[int], dtype: Dtype) -> Memory:
    """Elements one after the other, the first dimension first."""
    return row_major(sizes[::-1], dtype).transpose()


def reshaped(memory: Memory, sizes: Sequence[int], order: Any = "C") -> Memory | None:
    """The same elements with other sizes; None if they must be copied for that."""
    try:
        return np.reshape(memory, tuple(sizes), order=order, copy=False)
    except ValueError:
        return None


def dense(sizes: Sequence[int], dtype: Dtype, axes: Sequence[int]) -> Memory:
    """Elements one after the other, dimension ``axes[0]`` outermost."""
    return row_major([sizes[d] for d in axes], dtype).transpose(np.argsort(axes))


def by_columns(memory: Memory) -> bool:
    """Whether elements lie in column-major order and not in row-major order too."""
    return bool(memory.flags.f_contiguous and not memory.flags.c_contiguous)


def kept_axes(memories: Sequence[Memory], rank: int, *, joined: bool = False) -> tuple[int, ...] | None:
    """Order of dimensions, outermost first, in which NumPy lays out what it computes element by element; None for C.

    Of two dimensions the one with the larger strides is the outer one. Where operands disagree, and where none of them
    has both, the order is that of the result's shape.

    Parameters
    ----------
    memories : sequence of Memory
        Operands; their last dimensions are the result's, those of size 1 are repeated.
    rank : int
        Number of dimensions of the result.
    joined : bool
        Whether the operands are joined along a dimension: NumPy then compares from the first dimension on, else from
        the last one.
    """
    steps = [_steps(memory, rank) for memory in memories]
    axes: list[int] = []
    for axis in range(rank) if joined else reversed(range(rank)):
        place = len(axes)
        for k in reversed(range(len(axes))):
            votes = [(abs(s[axis]) > abs(s[axes[k]])) is joined for s in steps if s[axis] and s[axes[k]]]
            if votes and not all(votes):
                break
            place = k if votes else place
        axes.insert(place, axis)
    found = axes if joined else axes[::-1]
    return tuple(found) if found != list(range(rank)) else None


def _steps(memory: Memory, rank: int) -> list[int]:
    """Strides along the dimensions of a result; 0 where elements repeat."""
    own = [0 if n == 1 else s for n, s in zip(memory.shape, memory.strides, strict=True)]
    return [0] * (rank - len(own)) + own
