"""Gradients of reductions over segments."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.gradients.common import Tensor, conj


def _rows(of: Tensor, ids: Tensor) -> Tensor:
    return apply_op("GatherV2", of, ids, 0)


def _known_rows(of: Tensor, ids: Tensor) -> Tensor:
    """Rows by numbers of which negative ones mean none: zeros."""
    zero = apply_op("ZerosLike", ids)
    rows = _rows(of, apply_op("Maximum", ids, zero))
    there = apply_op("GreaterEqual", ids, zero)
    missing = apply_op("Sub", apply_op("Rank", rows), apply_op("Rank", ids))
    ones = apply_op("Fill", apply_op("ExpandDims", missing, 0), 1)
    shape = apply_op("ConcatV2", [apply_op("Shape", ids), ones], 0)
    return apply_op("SelectV2", apply_op("Reshape", there, shape), rows, apply_op("ZerosLike", rows))


@gradient("SegmentSum")
def segment_sum_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """To every row of a segment."""
    return _rows(dy, op.inputs[1]), None


def _counts(ids: Tensor, dy: Tensor) -> Tensor:
    """How many rows each segment has, of the shape [segments, 1, ..]."""
    ones = apply_op("Fill", apply_op("Shape", ids), apply_op("Cast", 1.0, DstT=dy.dtype))
    counts = apply_op("SegmentSum", ones, ids)
    rest = apply_op("Fill", apply_op("ExpandDims", apply_op("Sub", apply_op("Rank", dy), 1), 0), 1)
    shape = apply_op("ConcatV2", [apply_op("Shape", counts), rest], 0)
    return apply_op("Maximum", apply_op("Reshape", counts, shape), apply_op("Cast", 1.0, DstT=dy.dtype))


@gradient("SegmentMean")
def segment_mean_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Shared among the rows of a segment."""
    return _rows(dy / _counts(op.inputs[1], dy), op.inputs[1]), None


def _extreme(op: Any, dy: Tensor, rows: Any, total: Any) -> Tensor:
    """Shared among the rows that equal the extreme."""
    data, ids = op.inputs[:2]
    hits = apply_op("Cast", apply_op("Equal", data, rows(op.outputs[0], ids)), DstT=dy.dtype)
    share = apply_op("DivNoNan", dy, total(hits, ids))
    return rows(share, ids) * hits


@gradient("SegmentMax", "SegmentMin")
def segment_extreme_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """To the rows that are the extreme."""
    return _extreme(op, dy, _rows, lambda hits, ids: apply_op("SegmentSum", hits, ids)), None


@gradient("SegmentSumV2", "UnsortedSegmentSum")
def unsorted_sum_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """To every row of a segment."""
    return _known_rows(dy, op.inputs[1]), None, None


@gradient("SegmentMaxV2", "SegmentMinV2", "UnsortedSegmentMax", "UnsortedSegmentMin")
def unsorted_extreme_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """To the rows that are the extreme."""

    def total(hits: Tensor, ids: Tensor) -> Tensor:
        return apply_op("UnsortedSegmentSum", hits, ids, op.inputs[2])

    return _extreme(op, dy, _known_rows, total), None, None


@gradient("SegmentProdV2", "UnsortedSegmentProd")
def unsorted_product_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """The product of the other rows."""
    data, ids, count = op.inputs
    return _product_grad(data, ids, count, dy), None, None


@gradient("SegmentProd")
def segment_product_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """The product of the other rows."""
    data, ids = op.inputs
    count = apply_op("StridedSlice", apply_op("Shape", dy), [0], [1], [1], shrink_axis_mask=1)
    return _product_grad(data, ids, count, dy), None


def _product_grad(data: Tensor, ids: Tensor, count: Tensor, dy: Tensor) -> Tensor:
    """Where one row is 0, it alone gets any."""
    is_zero = apply_op("Equal", data, apply_op("ZerosLike", data))
    zeros = apply_op("UnsortedSegmentSum", apply_op("Cast", is_zero, DstT="int32"), ids, count)
    lifted = apply_op("SelectV2", is_zero, apply_op("OnesLike", data), data)
    product = apply_op("UnsortedSegmentProd", lifted, ids, count)  # of all that are not 0
    whole, zeros = _known_rows(dy * conj(product), ids), _known_rows(zeros, ids)
    nothing = apply_op("ZerosLike", data)
    without = apply_op("SelectV2", apply_op("Equal", zeros, 0), whole / conj(lifted), nothing)
    alone = apply_op("LogicalAnd", is_zero, apply_op("Equal", zeros, 1))
    return apply_op("SelectV2", alone, whole, without)


@gradient("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
def sparse_segment_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """To the rows that were chosen, as often as they were."""
    data, indices, ids = op.inputs
    if op.op != "SparseSegmentSum":
        counts = _counts(ids, dy)
        dy = dy / (counts if op.op == "SparseSegmentMean" else apply_op("Sqrt", counts))
    rows = apply_op("StridedSlice", apply_op("Shape", data), [0], [1], [1], shrink_axis_mask=1)
    return apply_op("UnsortedSegmentSum", _rows(dy, ids), indices, rows), None, None
