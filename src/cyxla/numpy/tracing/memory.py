"""How the elements of traced arrays would lie in memory: arrays that NumPy is asked about, and nobody reads.

Whether NumPy shares memory, in ``x[..., 0].reshape(2, -1)`` say, depends on strides. They are those of NumPy's own
arrays over a memory that is not there: parts of these are taken as parts of any array, and what would copy fails first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from cyxla.numpy.promotion import Dtype

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
