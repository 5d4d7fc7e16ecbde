"""Compaction by a mask: the rows at which it is true, packed at the front, and the way back."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.compaction_signature import COMPACT, COMPACT_INDICES, NO_ZERO_FILL
from cyxla.xla.lib.values import broadcast_to, scalar, sizes_of, zeros_like

_COUNT = Shape.array(ElementType.S64)


def compact(mask: XlaOp, operands: Sequence[XlaOp], *, zero_fill: bool = True) -> tuple[list[XlaOp], XlaOp]:
    """Pack the rows at which a mask is true.

    Parameters
    ----------
    mask : XlaOp
        Mask, pred[n].
    operands : sequence of XlaOp
        Arrays of rank 1 or more with n rows, of any element types.
    zero_fill : bool
        Whether zeros follow the selected rows. If false, anything may follow, which saves the time to write it: for
        callers that never read it.

    Returns
    -------
    packed : list of XlaOp
        Arrays of the shapes of the operands that begin with the selected rows, in order.
    count : XlaOp
        Number of selected rows, s64.
    """
    shape = Shape.tuple([*(x.shape.logical for x in operands), _COUNT])
    call = xla.custom_call(mask.builder, COMPACT, [mask, *operands], shape, _options(zero_fill))
    *packed, count = (xla.get_tuple_element(call, k) for k in range(len(operands) + 1))
    return packed, count


def compact_indices(
    mask: XlaOp, dtype: ElementType = ElementType.S64, *, zero_fill: bool = True
) -> tuple[XlaOp, XlaOp]:
    """Return the indices at which a mask is true, in order, at the front of a vector of n, and their number (s64).

    Parameters
    ----------
    mask : XlaOp
        Mask, pred[n].
    dtype : ElementType
        Type of the indices, S32 or S64.
    zero_fill : bool
        Whether zeros follow the indices; if false, anything may.
    """
    shape = Shape.tuple([Shape.array(dtype, sizes_of(mask)), _COUNT])
    call = xla.custom_call(mask.builder, COMPACT_INDICES, [mask], shape, _options(zero_fill))
    return xla.get_tuple_element(call, 0), xla.get_tuple_element(call, 1)


def _options(zero_fill: bool) -> str:
    return "" if zero_fill else NO_ZERO_FILL


def ranks(mask: XlaOp, dtype: ElementType = ElementType.S64) -> XlaOp:
    """Return for each element of a mask pred[n] the number of true elements before it."""
    (size,) = sizes_of(mask)
    ones = xla.convert(mask, dtype)
    add = scalar_computation("add", dtype)
    return xla.reduce_window(ones, scalar(ones, 0), add, [size], [1], [(size - 1, 0)]) - ones


def expand(mask: XlaOp, packed: XlaOp) -> XlaOp:
    """Undo a compaction: put packed rows where a mask is true, and zeros elsewhere.

    Parameters
    ----------
    mask : XlaOp
        Mask, pred[n].
    packed : XlaOp
        Array of n rows, of which the first are taken, one for each true element of the mask.
    """
    sizes = sizes_of(packed)
    if 0 in sizes:
        return packed
    rows = xla.gather(
        packed,
        ranks(mask),
        offset_dims=tuple(range(1, len(sizes))),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=1,
        slice_sizes=(1, *sizes[1:]),
    )
    selected = xla.broadcast_in_dim(mask, sizes, [0]) if len(sizes) > 1 else broadcast_to(mask, sizes)
    return xla.select(selected, rows, zeros_like(packed))
