"""Notes of what depends on whether an argument is contiguous in memory, which programs take for granted.

Where it does, calls with other arguments are left to NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyxla.numpy.tracing.arrays.memory_layout import memory_of, reshape_view
from cyxla.numpy.tracing.trace import current

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyxla.numpy.tracing.arrays.traced_array import TracedArray


def note_reshape(array: TracedArray, sizes: Sequence[int], order: str = "C") -> None:
    """Note that a reshape may be a view or a copy, unless it is a view of any array, or merges no dimensions."""
    if not _is_of_argument(array) or not array.size:
        return
    apart = _with_gaps(array)
    if (reshape_view(apart, sizes, order) is None) != (reshape_view(array.memory, sizes, order) is None):
        note_sharing(array)


def note_sharing(array: TracedArray) -> None:
    """Note that the layout of an argument decides whether a result shares memory with it."""
    if (trace := current()) is not None and _is_of_argument(array):
        trace.program.shares_by_layout = True


def note_layout(array: TracedArray) -> None:
    """Note that flags or strides of an argument are read."""
    if (trace := current()) is not None and _is_of_argument(array):
        trace.program.reads_layout = True


def _is_of_argument(array: TracedArray) -> bool:
    """Return True for an argument or an array from outside, and for views of one."""
    return bool(array.root.origin)


def _with_gaps(array: TracedArray) -> Any:
    """Return an array of the same order in memory, with unused elements behind each one along every dimension."""
    memory = array.memory
    strides, step = [0] * memory.ndim, 2 * memory.itemsize
    for d in sorted(range(memory.ndim), key=lambda d: (abs(memory.strides[d]), -d)):
        strides[d] = step
        step *= memory.shape[d] + 1
    return memory_of(memory.shape, memory.dtype, strides)
