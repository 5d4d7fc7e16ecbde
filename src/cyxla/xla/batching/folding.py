"""Dimensions of a batch that are moved, and those that are part of a larger dimension."""

from __future__ import annotations

from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def move_to_front(op: XlaOp, axis: int) -> XlaOp:
    """Move a dimension to the front."""
    return move_from_front(op, axis, inverse=True)


def move_from_front(op: XlaOp, axis: int, *, inverse: bool = False) -> XlaOp:
    """Move the first dimension to another place, or back from there."""
    if axis == 0:
        return op
    order = [*range(1, axis + 1), 0, *range(axis + 1, op.shape.rank)]
    return xla.transpose(op, [axis, *range(axis), *range(axis + 1, op.shape.rank)] if inverse else order)


def fold(op: XlaOp, axis: int, groups: int = 1) -> XlaOp:
    """Merge the first dimension into another one.

    Parameters
    ----------
    op : XlaOp
        Array whose first dimension is the batch.
    axis : int
        Dimension of one element to merge it into.
    groups : int
        Number of groups in which that dimension is, each of which gets the whole batch.
    """
    size, *dims = op.shape.dims
    split = xla.reshape(op, (size, *dims[:axis], groups, dims[axis] // groups, *dims[axis + 1 :]))
    return xla.reshape(move_from_front(split, axis + 1), (*dims[:axis], size * dims[axis], *dims[axis + 1 :]))


def unfold(op: XlaOp, axis: int, size: int, groups: int = 1) -> XlaOp:
    """Undo `fold`: take the batch out of a dimension, and move it to the front."""
    dims = op.shape.dims
    element = dims[axis] // size
    split = xla.reshape(op, (*dims[:axis], groups, size, element // groups, *dims[axis + 1 :]))
    return xla.reshape(move_to_front(split, axis + 1), (size, *dims[:axis], element, *dims[axis + 1 :]))
