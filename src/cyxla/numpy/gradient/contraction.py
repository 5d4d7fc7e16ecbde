"""Derivatives of products of arrays."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.numpy.gradient.table import Cotangents, Node, rule
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


@rule("dot")
def dot(node: Node) -> Cotangents:
    """The cotangent times the other operand, along the dimensions that this one does not have."""
    a = node.attrs
    left = (a["lhs_batch_dims"], a["lhs_contracting_dims"], node.shapes[0])
    right = (a["rhs_batch_dims"], a["rhs_contracting_dims"], node.shapes[1])
    lhs, rhs = node.operands
    return [
        _side(node.g, rhs, left, right, False) if node.needs[0] else None,
        _side(node.g, lhs, right, left, True) if node.needs[1] else None,
    ]


Side = tuple[Sequence[int], Sequence[int], Shape]


def _free(side: Side) -> list[int]:
    return [d for d in range(side[2].rank) if d not in side[0] and d not in side[1]]


def _side(g: XlaOp, other: XlaOp, mine: Side, its: Side, second: bool) -> XlaOp:
    """The cotangent of one operand; those of the result are batch, free of the first, free of the second."""
    batch, free, others = len(mine[0]), _free(mine), _free(its)
    at = batch + (0 if second else len(free))
    g_over = tuple(range(at, at + len(others)))
    wanted = mine[2].dtype
    full = xla.dot_general(
        g, xla.convert(other, g.shape.dtype) if other.shape.dtype is not g.shape.dtype else other,
        lhs_contracting_dims=g_over, rhs_contracting_dims=tuple(others),
        lhs_batch_dims=tuple(range(batch)), rhs_batch_dims=tuple(its[0]),
    )  # fmt: skip
    # batch, my free dimensions, then those contracted, in the order of the other operand's
    summed_over = [d for _, d in sorted(zip(its[1], mine[1], strict=True))]
    have = [*mine[0], *free, *summed_over]
    order = [have.index(d) for d in range(len(have))]
    back = full if order == sorted(order) else xla.transpose(full, order)
    return back if wanted is back.shape.dtype else xla.convert(back, wanted)
