"""NumPy's total order of elements: nan last, zeros of both signs equal, complex numbers by real parts first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values


def _keys(op: XlaOp) -> list[XlaOp]:
    """Return the sort keys of a value, in order of significance."""
    if values.is_complex(op):
        real, imag = xla.real(op), xla.imag(op)
        return [xla.or_(xla.ne(real, real), xla.ne(imag, imag)), _canonical(real), _canonical(imag)]
    return [_canonical(op)]


def _canonical(op: XlaOp) -> XlaOp:
    """Map all nans to one and both zeros to one."""
    if not values.is_float(op):
        return op
    zero = values.scalar(op, 0)
    plain = xla.select(xla.eq(op, zero), zero, op)
    return xla.select(xla.ne(op, op), values.scalar(op, np.nan), plain)


def _less(x: XlaOp, y: XlaOp) -> XlaOp:
    return xla.lt_total_order(x, y) if values.is_float(x) else xla.lt(x, y)


def _equal(x: XlaOp, y: XlaOp) -> XlaOp:
    return xla.eq_total_order(x, y) if values.is_float(x) else xla.eq(x, y)


def _lexicographic_less(pairs: Sequence[tuple[XlaOp, XlaOp]]) -> XlaOp:
    x, y = pairs[0]
    less = _less(x, y)
    return xla.or_(less, xla.and_(_equal(x, y), _lexicographic_less(pairs[1:]))) if len(pairs) > 1 else less


@lru_cache(maxsize=128)
def comparator(types: tuple[ElementType, ...], keys: int) -> XlaComputation:
    """Return a comparator that sorts by the first array, equal elements by the next one, and so on."""
    builder = XlaBuilder("before")
    shapes = [Shape.array(t) for t in types for _ in range(2)]
    parameters = [xla.parameter(builder, k, shape) for k, shape in enumerate(shapes)]
    sides = [(_keys(parameters[2 * k]), _keys(parameters[2 * k + 1])) for k in range(keys)]
    return builder.build(_lexicographic_less([pair for x, y in sides for pair in zip(x, y, strict=True)]))


def sort_together(ops: Sequence[XlaOp], axis: int, keys: int = 1) -> list[XlaOp]:
    """Sort arrays together along a dimension, stably.

    Parameters
    ----------
    ops : sequence of XlaOp
        Arrays of equal shapes.
    axis : int
        Dimension to sort, not negative.
    keys : int, optional
        Number of arrays that are keys; the rest are permuted along.
    """
    sorted_ = xla.sort(list(ops), comparator(tuple(o.shape.dtype for o in ops), keys), axis, is_stable=True)
    return [sorted_] if len(ops) == 1 else [xla.get_tuple_element(sorted_, k) for k in range(len(ops))]


def sort_indices(ops: Sequence[XlaOp], axis: int) -> XlaOp:
    """Return the indices that sort a dimension, as s64; the first array is the most significant key."""
    indices = values.iota_along(ops[0].builder, ElementType.S64, ops[0].shape.dims, axis)
    return sort_together([*ops, indices], axis, len(ops))[-1]


def comes_before(x: XlaOp, y: XlaOp) -> XlaOp:
    """Compare elements: true if the first comes before the second."""
    if values.is_complex(x):
        return _lexicographic_less(list(zip(_keys(x), _keys(y), strict=True)))
    less = xla.lt(x, y)
    return xla.or_(less, xla.and_(xla.ne(y, y), xla.eq(x, x))) if values.is_float(x) else less
