"""Arrays of run-time size that are contiguous in memory, or not, by their sizes."""

from __future__ import annotations

from typing import Any

from cyxla.numpy.tracing.arrays.layout_reads import note_sharing
from cyxla.numpy.tracing.arrays.sharing import share
from cyxla.numpy.tracing.arrays.sized_array import SizedArray


def in_order(array: SizedArray, order: str) -> SizedArray:
    """Return an array if it is contiguous for all sizes, else a copy, to which writes are refused.

    A dimension of size 1 may make it contiguous, and a slice is if it has all elements: then NumPy makes no copy.

    Parameters
    ----------
    array : SizedArray
        Array.
    order : str
        "C" or "F"; any array is in another order.
    """
    note_sharing(array.padded)
    return array if order not in "CF" or _is_contiguous(array, order) else shared(array.copy(order), array)


def _is_contiguous(array: SizedArray, order: str) -> bool:
    flags = array.padded.memory.flags
    if not (flags.c_contiguous if order == "C" else flags.f_contiguous):
        return False
    outermost = 0 if order == "C" else array.ndim - 1
    return array.padded.base is None or set(array.run_time_dims) <= {outermost}


def shared(result: Any, array: SizedArray) -> Any:
    """Return a result that is a copy here, and may be a view in NumPy, which depends on sizes: writes are refused."""
    root = (result.padded if isinstance(result, SizedArray) else result).root
    if root is not array.padded.root:
        share(root, [array.padded], "a reshaped array", "sizes known at run time")
    return result
