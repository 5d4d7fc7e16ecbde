"""Unique elements: sorted, of which the first of equal ones are packed."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cyxla.numpy.functions.movement import flat_copy
from cyxla.numpy.indexing.advanced import replace_combiner
from cyxla.numpy.indexing.packing import pack
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, valid
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, value_of
from cyxla.numpy.tracing.registry import NUMPY_ORIGINALS, implements
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_np: Any = np  # its functions dispatch to this package


@implements(np.unique)
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Any = None,
    *, equal_nan: bool = True, sorted: bool = True,
) -> Any:  # fmt: skip
    """Return the unique elements, and on request their indices and numbers."""
    array = ar if isinstance(ar, SizedArray) else as_strong(ar)
    wanted = (return_index, return_inverse, return_counts)
    if axis is not None:
        axis = normalize_axis_index(axis, array.ndim)
    if axis is None or array.ndim == 1:
        results = list(_unique_rows(_flat(array), wanted, equal_nan))
        if return_inverse and axis is None:
            at = 1 + return_index
            results[at] = _np.reshape(results[at], array.shape)
    else:
        rows = _np.moveaxis(array, axis, 0)
        rest = rows.shape[1:]
        matrix = rows if array.ndim == 2 else _np.reshape(rows, (rows.shape[0], prod(rest)))
        results = list(_unique_rows(matrix, wanted, False))
        found = results[0]
        restored = SizedArray(found.padded.reshape((found.bound, *rest)), {0: found.count})
        results[0] = _np.moveaxis(restored, 0, axis)
    return results[0] if len(results) == 1 else tuple(results)


def _unique_rows(array: Any, wanted: tuple[bool, bool, bool], equal_nan: bool) -> list[Any]:
    """Return unique elements of a vector or unique rows of a matrix, of known or of run-time size."""
    return_index, return_inverse, _ = wanted
    if array.ndim == 1 and not return_index and not return_inverse:
        found = _np.sort(array, kind="stable")
        ordered, positions = value_of(_elements(found)), None
    else:
        order = _elements(_order(array))
        ordered, positions = value_of(_np.take(_elements(array), order, axis=0)), value_of(order)
    is_first = _differs_from_previous(ordered, equal_nan)
    if isinstance(array, SizedArray):
        within = valid(SizedArray(TracedArray(is_first), {0: array.count}))
        is_first = xla.and_(is_first, value_of(within))
    size = array.count if isinstance(array, SizedArray) else array.shape[0]
    return _results(is_first, ordered, positions, wanted, size, array)


def _flat(array: Any) -> Any:
    return _np.ravel(array) if isinstance(array, SizedArray) else flat_copy(array)


def _elements(array: Any) -> Any:
    return array.padded if isinstance(array, SizedArray) else array


def _order(array: Any) -> Any:
    """Return the indices that sort elements, or rows lexicographically, stably."""
    if array.ndim == 1:
        return _np.argsort(array, kind="stable")
    rows, is_sized = _elements(array), isinstance(array, SizedArray)
    order: Any = as_traced(np.arange(rows.shape[0]))
    if not rows.shape[1] or not rows.shape[0]:
        return order
    order = _np.lexsort(rows.T[::-1])
    if is_sized:  # padding comes last
        padding = _np.logical_not(valid(SizedArray(order, {0: array.count})))
        order = order[_np.argsort(padding[order], kind="stable")]
    return order


def _differs_from_previous(op: XlaOp, equal_nan: bool) -> XlaOp:
    """Return for each sorted element or row whether it is the first of its kind."""
    size = op.shape.dims[0]
    indices = values.iota_along(op.builder, ElementType.S64, (size,), 0)
    is_start = xla.eq(indices, values.zeros_like(indices))
    if not op.shape.size:
        return is_start
    previous = xla.concatenate([xla.slice_in_dim(op, 0, 1), xla.slice_in_dim(op, 0, size - 1)], 0)
    differs = xla.ne(op, previous)
    if equal_nan and (values.is_float(op) or values.is_complex(op)):
        both_nan = xla.and_(xla.ne(op, op), xla.ne(previous, previous))
        differs = xla.and_(differs, xla.not_(both_nan))
    if op.shape.rank > 1:
        differs = value_of(_np.any(TracedArray(differs), axis=1))
    return xla.or_(is_start, differs)


def _results(
    is_first: XlaOp, ordered: XlaOp, positions: XlaOp | None, wanted: tuple[bool, bool, bool], size: Any, array: Any
) -> list[Any]:
    """Return unique elements, then what is wanted; `positions` are the indices of the sorted elements if needed."""
    return_index, return_inverse, return_counts = wanted
    packed: dict[str, XlaOp] = {"elements": ordered}
    if return_index:
        assert positions is not None
        packed["first"] = positions
    if return_counts:
        packed["starts"] = values.iota_along(is_first.builder, ElementType.S64, is_first.shape.dims, 0)
    parts, count = pack(is_first, [*packed.values()])
    found = {name: TracedArray(part) for name, part in zip(packed, parts, strict=True)}
    results: list[Any] = [SizedArray(found["elements"], {0: count})]
    if return_index:
        results.append(SizedArray(found["first"], {0: count}))
    if return_inverse:
        assert positions is not None
        results.append(_inverse(is_first, positions, array))
    if return_counts:
        results.append(SizedArray(_counts(found["starts"], count, size), {0: count}))
    return results


def _inverse(is_first: XlaOp, positions: XlaOp, array: Any) -> Any:
    """Return for each element the index of the unique element that equals it."""
    numbers: Any = _np.cumsum(TracedArray(is_first), dtype=np.int64) - 1
    if not isinstance(array, SizedArray):
        return TracedArray(_permuted(value_of(numbers), positions))
    within = valid(SizedArray(TracedArray(positions), {0: array.count}))
    targets = _np.where(within, TracedArray(positions), array.bound)  # the padding stays where it is
    return SizedArray(TracedArray(_permuted(value_of(numbers), value_of(targets))), {0: array.count})


def _permuted(op: XlaOp, positions: XlaOp) -> XlaOp:
    """Move each element of a vector to a position, if there is one; no two have the same."""
    if not op.shape.size:
        return op
    return xla.scatter(
        values.zeros_like(op), xla.reshape(positions, (*positions.shape.dims, 1)), op,
        replace_combiner(op.shape.dtype), update_window_dims=(), inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,), index_vector_dim=1, unique_indices=True,
    )  # fmt: skip


def _counts(starts: Any, count: Any, size: Any) -> TracedArray:
    """Return the distances from each start to the next one, of the last to the size."""
    following = _np.concatenate([starts[1:], starts[:1]])
    is_last = np.equal(np.arange(starts.shape[0]), count - 1)
    return as_traced(_np.where(is_last, size, following) - starts)


def _result_class(function: Any) -> Any:
    """Return the class of named tuples that a function of the array API returns."""
    return type(NUMPY_ORIGINALS.get(function, function)(np.zeros(1)))


@implements(np.unique_all)
def unique_all(x: Any) -> Any:
    """Return unique elements, indices, inverse and numbers."""
    return _result_class(np.unique_all)(*unique(x, True, True, True, equal_nan=False))


@implements(np.unique_counts)
def unique_counts(x: Any) -> Any:
    """Return unique elements and their numbers."""
    return _result_class(np.unique_counts)(*unique(x, return_counts=True, equal_nan=False))


@implements(np.unique_inverse)
def unique_inverse(x: Any) -> Any:
    """Return unique elements and the inverse."""
    return _result_class(np.unique_inverse)(*unique(x, return_inverse=True, equal_nan=False))


@implements(np.unique_values, note="sorted, where NumPy returns any order")
def unique_values(x: Any) -> Any:
    """Return unique elements."""
    return unique(x, equal_nan=False)


# -- sets


@implements(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    """Return the sorted union."""
    return unique(_np.concatenate((ar1, ar2), axis=None))


@implements(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """Return the elements of one array that are not in another."""
    first = _flat(_array(ar1)) if assume_unique else unique(ar1)
    return first[_np.isin(first, _array(ar2), invert=True)]


@implements(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """Return the elements that are in one of two arrays."""
    first, second = (_array(a) if assume_unique else unique(a) for a in (ar1, ar2))
    joined = _np.sort(_np.concatenate((first, second), axis=None))
    differs = _np.not_equal(joined[1:], joined[:-1])
    flags = _np.concatenate(([True], differs, [True]))
    return joined[_np.logical_and(flags[1:], flags[:-1])[: joined.size]]  # of nothing, there is one too many


@implements(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Return the elements that are in both arrays, and on request their indices."""
    first, second = _array(ar1), _array(ar2)
    parts: list[Any] = [(_flat(a), None) if assume_unique else unique(a, return_index=True) for a in (first, second)]
    joined = _np.concatenate([p[0] for p in parts])
    order = _np.argsort(joined, kind="stable")
    joined = joined[order]
    is_pair = _np.equal(joined[1:], joined[:-1])
    common = joined[:-1][is_pair]
    if not return_indices:
        return common
    indices = [order[:-1][is_pair], order[1:][is_pair] - parts[0][0].size]
    if assume_unique:
        return common, *indices
    return common, *[found[k] for (_, found), k in zip(parts, indices, strict=True)]


def _array(value: Any) -> Any:
    return value if isinstance(value, SizedArray) else as_strong(value)


__all__ = ["unique"]
