"""Gradients of reductions over segments."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.gradients.common import Tensor, conj


def _rows(of: Tensor, ids: Tensor) -> Tensor:
    return apply_op("GatherV2", of, ids, 0)


def _rows_or_zeros(of: Tensor, ids: Tensor) -> Tensor:
    """Gather rows by id; negative ids give zeros."""
    zero = apply_op("ZerosLike", ids)
    rows = _rows(of, apply_op("Maximum", ids, zero))
    valid = apply_op("GreaterEqual", ids, zero)
    extra_dims = apply_op("Sub", apply_op("Rank", rows), apply_op("Rank", ids))
    ones = apply_op("Fill", apply_op("ExpandDims", extra_dims, 0), 1)
    shape = apply_op("ConcatV2", [apply_op("Shape", ids), ones], 0)
    return apply_op("SelectV2", apply_op("Reshape", valid, shape), rows, apply_op("ZerosLike", rows))


@gradient("SegmentSum")
def segment_sum_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Gather the gradient of each row's segment."""
    return _rows(dy, op.inputs[1]), None


def _counts(ids: Tensor, dy: Tensor) -> Tensor:
    """Return the number of rows of each segment, at least 1, as [segments, 1, ..]."""
    ones = apply_op("Fill", apply_op("Shape", ids), apply_op("Cast", 1.0, DstT=dy.dtype))
    counts = apply_op("SegmentSum", ones, ids)
    rest = apply_op("Fill", apply_op("ExpandDims", apply_op("Sub", apply_op("Rank", dy), 1), 0), 1)
    shape = apply_op("ConcatV2", [apply_op("Shape", counts), rest], 0)
    return apply_op("Maximum", apply_op("Reshape", counts, shape), apply_op("Cast", 1.0, DstT=dy.dtype))


@gradient("SegmentMean")
def segment_mean_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Gather the gradient of each row's segment, divided by its number of rows."""
    return _rows(dy / _counts(op.inputs[1], dy), op.inputs[1]), None


def _extremum(op: Any, dy: Tensor, rows: Any, total: Any) -> Tensor:
    """Share the gradient equally among the rows that attain the extremum."""
    data, ids = op.inputs[:2]
    mask = apply_op("Cast", apply_op("Equal", data, rows(op.outputs[0], ids)), DstT=dy.dtype)
    share = apply_op("DivNoNan", dy, total(mask, ids))
    return rows(share, ids) * mask


@gradient("SegmentMax", "SegmentMin")
def segment_extreme_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Share the gradient equally among the rows that attain the extremum."""
    return _extremum(op, dy, _rows, lambda mask, ids: apply_op("SegmentSum", mask, ids)), None


@gradient("SegmentSumV2", "UnsortedSegmentSum")
def unsorted_sum_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Gather the gradient of each row's segment."""
    return _rows_or_zeros(dy, op.inputs[1]), None, None


@gradient("SegmentMaxV2", "SegmentMinV2", "UnsortedSegmentMax", "UnsortedSegmentMin")
def unsorted_extreme_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Share the gradient equally among the rows that attain the extremum."""

    def total(mask: Tensor, ids: Tensor) -> Tensor:
        return apply_op("UnsortedSegmentSum", mask, ids, op.inputs[2])

    return _extremum(op, dy, _rows_or_zeros, total), None, None


@gradient("SegmentProdV2", "UnsortedSegmentProd")
def unsorted_product_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Multiply by the product of the other rows."""
    data, ids, count = op.inputs
    return _product_grad(data, ids, count, dy), None, None


@gradient("SegmentProd")
def segment_product_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Multiply by the product of the other rows."""
    data, ids = op.inputs
    count = apply_op("StridedSlice", apply_op("Shape", dy), [0], [1], [1], shrink_axis_mask=1)
    return _product_grad(data, ids, count, dy), None


def _product_grad(data: Tensor, ids: Tensor, count: Tensor, dy: Tensor) -> Tensor:
    """Multiply by the product of the other rows; if a single row is zero, only it gets a gradient."""
    is_zero = apply_op("Equal", data, apply_op("ZerosLike", data))
    zeros = apply_op("UnsortedSegmentSum", apply_op("Cast", is_zero, DstT="int32"), ids, count)
    nonzero = apply_op("SelectV2", is_zero, apply_op("OnesLike", data), data)
    product = apply_op("UnsortedSegmentProd", nonzero, ids, count)  # of nonzero rows
    grad_rows, zeros = _rows_or_zeros(dy * conj(product), ids), _rows_or_zeros(zeros, ids)
    zeros_like = apply_op("ZerosLike", data)
    product_of_others = apply_op("SelectV2", apply_op("Equal", zeros, 0), grad_rows / conj(nonzero), zeros_like)
    single_zero = apply_op("LogicalAnd", is_zero, apply_op("Equal", zeros, 1))
    return apply_op("SelectV2", single_zero, grad_rows, product_of_others)


@gradient("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
def sparse_segment_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Sum the gradients of all uses of each selected row."""
    data, indices, ids = op.inputs
    if op.op != "SparseSegmentSum":
        counts = _counts(ids, dy)
        dy = dy / (counts if op.op == "SparseSegmentMean" else apply_op("Sqrt", counts))
    rows = apply_op("StridedSlice", apply_op("Shape", data), [0], [1], [1], shrink_axis_mask=1)
    return apply_op("UnsortedSegmentSum", _rows(dy, ids), indices, rows), None, None
