"""Membership of elements in another array."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, value_of
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.promotion import common_kind, dtype_of
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.ufunc_methods.reduce import reduce_op
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_RANGE_MESSAGE = (
    "You have specified kind='table', but the range of values in `ar2` or `ar1` exceed the maximum integer of the "
    "datatype. Please set `kind` to None or 'sort'."
)
_MAX_COMPARED = 16  # greatest number of candidates that are compared one by one


@implements(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None
) -> Any:
    """Test which elements are in another array."""
    if np.ndim(assume_unique):
        raise TraceError("np.isin: assume_unique is an array", where=user_line(), hint="pass a bool")
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    array, candidates = as_strong(element), as_strong(test_elements)
    if kind == "table" and not (array.dtype.kind in "iub" and candidates.dtype.kind in "iub"):
        raise ValueError(
            "The 'table' method is only supported for boolean or integer arrays. Please select 'sort' or None for kind."
        )
    if kind == "table" and candidates.size:
        _check_range(value_of(candidates))
    common = dtype_of(common_kind(array.dtype, candidates.dtype))
    if candidates.size == 0:
        is_member: Any = np.zeros_like(array, dtype=bool)
    elif candidates.size <= _MAX_COMPARED:
        is_member = _compare_each(as_traced(array, common), as_traced(candidates, common))
    else:
        is_member = _search_sorted(as_traced(array, common), as_traced(candidates, common))
    return np.logical_not(is_member) if invert else is_member


def _check_range(candidates: XlaOp) -> None:
    """Make runs raise an error if NumPy's table of integers would be too large."""
    dtype = values.numpy_type(candidates)
    if dtype.kind != "i":
        return
    axes = range(candidates.shape.rank)
    lowest, greatest = reduce_op(np.minimum, candidates, axes), reduce_op(np.maximum, candidates, axes)
    limit = values.scalar(candidates, np.iinfo(dtype).max)
    negative = xla.lt(lowest, values.zeros_like(lowest))
    too_wide = xla.and_(negative, xla.gt(greatest, xla.add(limit, xla.minimum(lowest, values.zeros_like(lowest)))))
    require_current().fail_if(
        too_wide, require_current().constant(0, np.dtype(np.int64)), lambda _: RuntimeError(_RANGE_MESSAGE)
    )


def _compare_each(array: TracedArray, candidates: TracedArray) -> TracedArray:
    flat = xla.reshape(value_of(candidates), (candidates.size,))
    scalars = [xla.reshape(xla.slice_in_dim(flat, k, k + 1), ()) for k in range(candidates.size)]
    is_member = None
    for scalar in scalars:
        equal = xla.eq(value_of(array), broadcast_to(scalar, array.shape))
        is_member = equal if is_member is None else xla.or_(is_member, equal)
    assert is_member is not None
    return TracedArray(is_member)


def _search_sorted(array: TracedArray, candidates: TracedArray) -> Any:
    """Search in sorted elements; nan is never found, since it equals nothing."""
    sorted_candidates: Any = np.sort(np.ravel(candidates))
    indices: Any = np.searchsorted(sorted_candidates, array)
    return np.equal(sorted_candidates[np.minimum(indices, candidates.size - 1)], array)
