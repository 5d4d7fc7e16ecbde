"""First step of softmax and of its logarithm."""

from __future__ import annotations

from cyxla.errors import ShapeError
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.lib.values import broadcast_to, max_of, rank_of, sizes_of


def subtract_max(x: XlaOp) -> XlaOp:
    """Subtract the maximum of each row, which keeps exponentials finite."""
    if not rank_of(x):
        raise ShapeError("logits must have a last dimension of classes; this is a scalar")
    return x - broadcast_to(max_of(x, [-1], keep=True), sizes_of(x))
