"""Unique elements, by sorting, compaction and scans with doubling steps."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.compaction import compact_indices, ranks
from cyxla.xla.lib.values import (
    broadcast_to,
    full_like,
    iota,
    iota_along,
    is_complex,
    is_float,
    reduced,
    scalar,
    select,
    sizes_of,
    zeros_like,
)

_S32 = ElementType.S32


def compress_indices(mask: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Return the indices of a mask's true elements, followed by zeros, and the number of true elements (s32)."""
    indices, count = compact_indices(mask, _S32)
    return indices, xla.convert(count, _S32)


def first_equal(x: XlaOp) -> XlaOp:
    """Return the index (s32) of the first equal element for each element of a vector, by a sort."""
    (size,) = sizes_of(x)
    keys = _keys(x)
    indices = iota(x.builder, _S32, size)
    *ordered, order = _elements(xla.sort([*keys, indices], _comparator([k.shape.dtype for k in keys]), is_stable=True))
    starts = xla.not_(_all([_equals_previous(k) for k in ordered]))
    group = _cumulative_max(select(starts, indices, zeros_like(indices)))  # start of each group in the sorted vector
    first = rows_at(order, group)
    return _elements(xla.sort([order, first], is_stable=True))[1]


def first_equal_row(x: XlaOp) -> XlaOp:
    """Return the index (s32) of the first equal row for each row of a matrix, by comparing all pairs."""
    rows, columns = sizes_of(x)
    every = (rows, rows, columns)
    parts = []
    for key in _keys(x):
        compare = xla.eq_total_order if is_float(key) else xla.eq
        parts.append(compare(*(xla.broadcast_in_dim(key, every, (d, 2)) for d in (0, 1))))
    same = _all(parts)
    equal = reduced(same, "and", scalar(same, True), [2])
    index = iota_along(x.builder, _S32, (rows, rows), 1)
    return reduced(select(equal, index, full_like(index, rows)), "minimum", scalar(index, rows), [1])


def number_groups(first: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Return a mask of first occurrences, and for each element the number of its first occurrence among these."""
    (size,) = sizes_of(first)
    is_first = xla.eq(first, iota(first.builder, _S32, size))
    return is_first, rows_at(ranks(is_first, _S32), first)


def _cumulative_max(x: XlaOp) -> XlaOp:
    """Return the cumulative maximum of a vector of nonnegative numbers."""
    (size,) = sizes_of(x)
    step = 1
    while step < size:
        before = xla.pad(xla.slice_in_dim(x, 0, size - step), scalar(x, 0), [(step, 0, 0)])
        x = xla.maximum(x, before)
        step *= 2
    return x


def rows_at(x: XlaOp, indices: XlaOp) -> XlaOp:
    """Gather rows of an array by a vector of indices, all of which are in range."""
    rest = sizes_of(x)[1:]
    if 0 in sizes_of(x) or 0 in sizes_of(indices):
        return xla.broadcast(scalar(x, 0), (*sizes_of(indices), *rest))
    return xla.gather(
        x,
        indices,
        offset_dims=tuple(range(1, 1 + len(rest))),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=1,
        slice_sizes=(1, *rest),
    )


def _keys(x: XlaOp) -> list[XlaOp]:
    """Return sort keys of the elements; -0 equals 0."""
    if is_complex(x):
        return [*_keys(xla.real(x)), *_keys(xla.imag(x))]
    if x.shape.dtype is ElementType.PRED:
        return [xla.convert(x, _S32)]
    return [select(xla.eq(x, zeros_like(x)), zeros_like(x), x)] if is_float(x) else [x]


def _comparator(dtypes: Sequence[ElementType]) -> XlaComputation:
    """Build a lexicographic comparator of several keys and an index; floats are in total order."""
    builder = XlaBuilder("before")
    kinds = [t for t in (*dtypes, _S32) for _ in range(2)]
    parameters = [xla.parameter(builder, i, Shape.array(t), f"p{i}") for i, t in enumerate(kinds)]
    result = None
    for k in reversed(range(len(dtypes))):
        a, b = parameters[2 * k : 2 * k + 2]
        less, equal = (
            (xla.lt_total_order(a, b), xla.eq_total_order(a, b)) if dtypes[k].is_float else (xla.lt(a, b), xla.eq(a, b))
        )
        result = less if result is None else xla.or_(less, xla.and_(equal, result))
    assert result is not None
    return builder.build(result)


def _elements(tuple_op: XlaOp) -> list[XlaOp]:
    return [xla.get_tuple_element(tuple_op, i) for i in range(len(tuple_op.shape.elements))]


def _all(parts: Sequence[XlaOp]) -> XlaOp:
    result, *rest = parts
    for part in rest:
        result = xla.and_(result, part)
    return result


def _equals_previous(x: XlaOp) -> XlaOp:
    """Return a mask of the elements of a vector that equal their predecessor; false for the first."""
    (size,) = sizes_of(x)
    compare = xla.eq_total_order if is_float(x) else xla.eq
    same = compare(xla.slice_in_dim(x, 1, size), xla.slice_in_dim(x, 0, size - 1))
    return xla.concatenate([broadcast_to(scalar(same, False), (1,)), same], 0)
