"""Classification losses together with their gradients."""

from __future__ import annotations

from cyxla.errors import ShapeError
from cyxla.tf2xla.lib.softmax import subtract_max
from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import (
    broadcast_to,
    full_like,
    iota_along,
    is_narrow,
    paired,
    rank_of,
    select,
    sizes_of,
    sum_of,
    widened,
    zeros_like,
)


def _losses(features: XlaOp, labels: XlaOp) -> list[XlaOp]:
    """Return -sum(labels * log softmax) and softmax - labels of rows."""
    logits = subtract_max(features)
    exponentials = xla.exponential(logits)
    total = sum_of(exponentials, [1], keep=True)
    log_softmax = logits - broadcast_to(xla.log(total), sizes_of(logits))
    # Terms with probability 0 are 0, even if the logarithm is infinite.
    terms = select(xla.eq(labels, zeros_like(labels)), zeros_like(labels), labels * log_softmax)
    return [-sum_of(terms, [1]), exponentials / broadcast_to(total, sizes_of(exponentials)) - labels]


def _as_type_of(values: list[XlaOp], like: XlaOp) -> list[XlaOp]:
    return [xla.convert(v, like.shape.dtype) for v in values] if is_narrow(like) else values


@lowering("SoftmaxCrossEntropyWithLogits")
def _cross_entropy(features: XlaOp, labels: XlaOp) -> list[XlaOp]:
    logits, targets = paired(features, labels)
    if rank_of(logits) != 2:
        raise ShapeError(f"logits must be a matrix of rows of classes; with the labels: {list(sizes_of(logits))}")
    return _as_type_of(_losses(widened(logits), widened(targets)), features)


@lowering("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_cross_entropy(features: XlaOp, labels: XlaOp) -> list[XlaOp]:
    """Expand labels to one-hot rows; a label out of range gives NaN."""
    if rank_of(features) != 2 or sizes_of(labels) != sizes_of(features)[:1]:
        raise ShapeError(f"logits {list(sizes_of(features))} need rows, and a label for each: {list(sizes_of(labels))}")
    wide, sizes = widened(features), sizes_of(features)
    repeated = xla.broadcast_in_dim(labels, sizes, (0,))
    hit = xla.eq(repeated, iota_along(labels.builder, labels.shape.dtype, sizes, 1))
    targets = select(hit, full_like(wide, 1), zeros_like(wide))
    size = full_like(repeated, sizes[1])
    bad = xla.or_(xla.lt(repeated, zeros_like(repeated)), xla.ge(repeated, size))
    targets = select(bad, full_like(wide, float("nan")), targets)
    return _as_type_of(_losses(wide, targets), features)
