"""Packing: the rows that a traced mask selects, moved to the front of an array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cyxla.numpy.indexing.equal_values import same_value
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, size_array
from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.trace import Rule, require_current
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values
from cyxla.xla.lib.compaction import compact, compact_indices, expand

_MOST_COMPARED = 16  # number of earlier masks with which a mask is compared


def pack(mask: XlaOp, arrays: Sequence[XlaOp]) -> tuple[list[XlaOp], TracedArray]:
    """Move the rows of arrays where a mask is true to the front.

    Parameters
    ----------
    mask : XlaOp
        pred[n].
    arrays : sequence of XlaOp
        Arrays of n rows.

    Returns
    -------
    packed : list of XlaOp
        Arrays of the same shapes that begin with these rows; the others have any values.
    count : TracedArray
        Number of rows; of equal masks the same value.
    """
    if not mask.shape.size:
        return list(arrays), size_array(require_current().constant(0, np.dtype(np.int64)), 0)
    packed, count = compact(mask, arrays, zero_fill=False)
    differentiable = [k for k, a in enumerate(arrays) if a.shape.dtype.is_float or a.shape.dtype.is_complex]
    if differentiable:
        _attach_rule(mask, [arrays[k] for k in differentiable], [packed[k] for k in differentiable])
    return packed, size_array(_count_of(mask, count), mask.shape.size)


def _count_of(mask: XlaOp, count: XlaOp) -> XlaOp:
    """Return the number of rows that a mask selects: that of an equal mask if there was one."""
    known = require_current().mask_counts
    assert mask.instruction is not None
    for other, other_count in reversed(known[-_MOST_COMPARED:]):
        if same_value(other, mask.instruction):
            return other_count
    known.append((mask.instruction, count))
    return count


def _attach_rule(mask: XlaOp, arrays: Sequence[XlaOp], packed: Sequence[XlaOp]) -> None:
    rule = Rule([mask, *arrays], list(packed), _packed_gradient)
    for p in packed:
        assert p.instruction is not None
        require_current().rules[p.instruction] = rule


def _packed_gradient(
    inputs: list[XlaOp], outputs: list[XlaOp], cotangents: Sequence[XlaOp | None]
) -> list[XlaOp | None]:
    """Return the cotangents of arrays from those of packed ones, whose padding is not read."""
    return [None, *[None if c is None else expand(inputs[0], c) for c in cotangents]]


def pack_indices(mask: XlaOp) -> tuple[XlaOp, TracedArray]:
    """Return the indices of the true elements of a vector, s64, followed by zeros; and their number."""
    if not mask.shape.size:
        (indices,), size = pack(mask, [xla.convert(mask, ElementType.S64)])
        return indices, size
    indices, count = compact_indices(mask)
    _declare_range(indices, mask.shape.size)
    return indices, size_array(_count_of(mask, count), mask.shape.size)


def _declare_range(indices: XlaOp, size: int) -> None:
    assert indices.instruction is not None
    require_current().ranges[indices.instruction] = (0, max(size - 1, 0))


def nonzero_indices(mask: XlaOp) -> tuple[SizedArray, ...]:
    """Return the indices of the true elements of a mask in each dimension, in row-major order."""
    sizes, size = mask.shape.dims, mask.shape.size
    flat = xla.reshape(mask, (size,))
    if len(sizes) == 1:
        indices, count = pack_indices(flat)
        return (SizedArray(TracedArray(indices), {0: count}),)
    require_current().program.flattened.append(mask.shape)
    coordinates = [
        xla.reshape(values.iota_along(mask.builder, ElementType.S64, sizes, d), (size,)) for d in range(len(sizes))
    ]
    packed, count = pack(flat, coordinates)
    for op, n in zip(packed, sizes, strict=True):
        _declare_range(op, n)
    return tuple([SizedArray(TracedArray(p), {0: count}) for p in packed])
