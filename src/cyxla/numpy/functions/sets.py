"""Set functions whose results have a known shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.numpy.functions.movement import array_of
from cyxla.numpy.tracing.promotion import common_kind, dtype_of
from cyxla.numpy.tracing.registry import ALTERNATIVES, implements
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.ufunc_methods.reduce import reduce_op
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_TOO_FAR = (
    "You have specified kind='table', but the range of values in `ar2` or `ar1` exceed the maximum integer of the "
    "datatype. Please set `kind` to None or 'sort'."
)
_FEW = 16  # most elements that are each compared with each
_SIZED = "how many there are is known in a run only: "

ALTERNATIVES.update(
    {
        "unique": _SIZED + "np.sort(x) and np.diff tell where a new one starts; or call it on the result",
        "unique_all": _SIZED + "np.sort(x) and np.diff tell where a new one starts; or call it on the result",
        "unique_counts": _SIZED + "np.bincount(x, minlength=n) counts integers; or call it on the result",
        "unique_inverse": _SIZED + "np.searchsorted(values, x) finds places in values that are known",
        "unique_values": _SIZED + "np.sort(x) and np.diff tell where a new one starts; or call it on the result",
        "intersect1d": _SIZED + "np.isin(a, b) says which of a are in b",
        "setdiff1d": _SIZED + "np.isin(a, b, invert=True) says which of a are not in b",
        "union1d": _SIZED + "np.sort(np.concatenate([a, b])) holds them all",
        "setxor1d": _SIZED + "np.isin(a, b, invert=True) says which of a are not in b",
    }
)


@implements(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None
) -> Any:
    """Test which elements are in another array."""
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    array, among = array_of(element), array_of(test_elements)
    if kind == "table" and not (array.dtype.kind in "iub" and among.dtype.kind in "iub"):
        raise ValueError(
            "The 'table' method is only supported for boolean or integer arrays. Please select 'sort' or None for kind."
        )
    if kind == "table" and among.size:
        _check_range(value_of(among))
    common = dtype_of(common_kind(array.dtype, among.dtype))
    if among.size == 0:
        found: Any = np.zeros_like(array, dtype=bool)
    elif among.size <= _FEW:
        found = _compared(as_traced(array, common), as_traced(among, common))
    else:
        found = _looked_up(as_traced(array, common), as_traced(among, common))
    return np.logical_not(found) if invert else found


def _check_range(among: XlaOp) -> None:
    """Make runs raise an error if NumPy's table of integers would be too large."""
    dtype = values.numpy_type(among)
    if dtype.kind != "i":
        return
    every = range(among.shape.rank)
    least, greatest = reduce_op(np.minimum, among, every), reduce_op(np.maximum, among, every)
    most = values.scalar(among, np.iinfo(dtype).max)
    negative = xla.lt(least, values.zeros_like(least))
    far = xla.and_(negative, xla.gt(greatest, xla.add(most, xla.minimum(least, values.zeros_like(least)))))
    require_current().fail_if(far, require_current().constant(0, np.dtype(np.int64)), lambda _: RuntimeError(_TOO_FAR))


def _compared(array: TracedArray, among: TracedArray) -> TracedArray:
    flat = xla.reshape(value_of(among), (among.size,))
    one = [xla.reshape(xla.slice_in_dim(flat, k, k + 1), ()) for k in range(among.size)]
    found = None
    for other in one:
        equal = xla.eq(value_of(array), broadcast_to(other, array.shape))
        found = equal if found is None else xla.or_(found, equal)
    assert found is not None
    return TracedArray(found)


def _looked_up(array: TracedArray, among: TracedArray) -> Any:
    """Search in sorted elements; nan is never found, since it equals nothing."""
    ordered: Any = np.sort(np.ravel(among))
    places: Any = np.searchsorted(ordered, array)
    return np.equal(ordered[np.minimum(places, among.size - 1)], array)
