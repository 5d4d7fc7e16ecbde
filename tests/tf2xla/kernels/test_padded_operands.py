"""Ops whose kernels take static sizes alone, of arrays whose sizes are known only at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.graphs.compiled import PLATFORMS
from support.graphs.run_time_sizes import Make, bools, check_all, chosen, ints, runner

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.types import DataType
from cyxla.errors import UnimplementedError

INT32, INT64, FLOAT = DataType.DT_INT32, DataType.DT_INT64, DataType.DT_FLOAT
TABLE = np.float32([[-4, 2.5, 1], [0.5, -2, 3.5], [5, 6.5, -8], [9.5, 11, 12.5], [0.5, 0.5, -0.5]])
MASKS = [bools(0, 1, 0, 1, 1), bools(0, 0, 1, 0, 0), bools(1, 1, 1, 1, 1), bools(0, 0, 0, 0, 0), bools(1, 0, 1, 0, 0)]
COLUMNS = np.ascontiguousarray(TABLE[:4].T)
EMPTY = np.zeros(0, np.float32)


def op(name: str, *args: Any, **attrs: Any) -> Any:
    """Add a node."""
    return apply_op(name, *args, **attrs)


def _number(mask: Any) -> Any:
    """Return the number of true elements, as it is known from the size of an array."""
    return op("Size", op("Where", mask))


def _number64(mask: Any) -> Any:
    return op("Size", op("Where", mask), out_type=INT64)


def _ids(mask: Any, count: int) -> Any:
    """Return numbers below a count, one for each true element."""
    return op("FloorMod", op("Squeeze", op("Where", mask), squeeze_dims=[1]), np.int64(count))


def _first(x: Any) -> Any:
    return op("StridedSlice", x, ints(0, 0), ints(0, 1), ints(1, 1), begin_mask=1, end_mask=1, shrink_axis_mask=2)


def _turned(x: Any) -> Any:
    return op("Transpose", x, ints(1, 0))


def _slice(x: Any, begin: int, end: int, step: int = 1, **masks: int) -> Any:
    return op("StridedSlice", x, ints(begin), ints(end), ints(step), **masks)


def _segments(name: str) -> Make:
    return lambda r, m: op(name, r, _ids(m, 2), np.int32(3))


#: What is made of rows that a mask chooses, [n, 3], and of the mask.
MAKERS: dict[str, Make] = {
    "clipped": lambda r, m: op("ClipByValue", r, np.float32(-1), np.float32(2)),
    "added": lambda r, m: op("AddN", [r, r, op("Neg", r)]),
    "biased": lambda r, m: op("BiasAdd", r, TABLE[0]),
    "gradient of a bias": lambda r, m: op("BiasAddGrad", r),
    "ones": lambda r, m: op("OnesLike", r),
    "zeros": lambda r, m: op("ZerosLike", r),
    "equal": lambda r, m: op("Equal", r, np.float32(0.5)),
    "not equal": lambda r, m: op("NotEqual", r, _turned(_turned(r))),
    "nearly equal": lambda r, m: op("ApproximateEqual", r, r),
    "selected": lambda r, m: op("Select", op("Greater", r, np.float32(0)), r, op("Neg", r)),
    "selected rows": lambda r, m: op("Select", op("Greater", _first(r), np.float32(0)), r, op("Neg", r)),
    "gradient of relu": lambda r, m: op("ReluGrad", r, r),
    "buckets": lambda r, m: op("Bucketize", r, boundaries=[0.0, 3.0]),
    "bits": lambda r, m: op("Bitcast", r, type=INT32),
    "softmax": lambda r, m: op("Softmax", r),
    "softmax of a vector": lambda r, m: op("Softmax", _first(r)),
    "logarithm of softmax": lambda r, m: op("LogSoftmax", _turned(r)),
    "sparse loss": lambda r, m: op("SparseSoftmaxCrossEntropyWithLogits", r, _ids(m, 3))[0],
    "gradient of the sparse loss": lambda r, m: op("SparseSoftmaxCrossEntropyWithLogits", r, _ids(m, 3))[1],
    "loss": lambda r, m: op("SoftmaxCrossEntropyWithLogits", r, op("Softmax", r))[0],
    "half of squares": lambda r, m: op("L2Loss", r),
    "greatest of rows": lambda r, m: op("ArgMax", r, np.int32(1)),
    "greatest of columns": lambda r, m: op("ArgMax", r, np.int32(0)),
    "least of columns": lambda r, m: op("ArgMin", r, np.int32(0)),
    "scan": lambda r, m: op("Cumsum", r, np.int32(0)),
    "reversed scan": lambda r, m: op("Cumprod", r, np.int32(0), reverse=True),
    "exclusive scan of rows": lambda r, m: op("Cumsum", r, np.int32(1), exclusive=True),
    "one hot": lambda r, m: op("OneHot", _ids(m, 5), np.int32(4), np.float32(1), np.float32(0)),
    "one hot, of as many": lambda r, m: op("OneHot", _ids(m, 5), _number(m), np.float32(1), np.float32(0), axis=0),
    "packed": lambda r, m: op("Pack", [_first(r), _first(r)], axis=1),
    "unpacked": lambda r, m: op("Unpack", r, num=3, axis=1)[1],
    "split": lambda r, m: op("Split", np.int32(1), r, num_split=3)[2],
    "split by sizes": lambda r, m: op("SplitV", r, ints(1, 2), np.int32(1), num_split=2)[1],
    "repeated": lambda r, m: op("Tile", r, ints(1, 2)),
    "mirrored": lambda r, m: op("MirrorPad", r, np.int32([[0, 0], [1, 2]]), mode="SYMMETRIC"),
    "rolled": lambda r, m: op("Roll", r, np.int32(1), np.int32(1)),
    "diagonal": lambda r, m: op("Diag", _first(r)),
    "diagonals": lambda r, m: op("MatrixDiagV3", r, np.int32(0), np.int32(-1), np.int32(-1), np.float32(0)),
    "best of rows": lambda r, m: op("TopKV2", r, np.int32(2))[1],
    "among the best": lambda r, m: op("InTopKV2", r, op("Cast", _ids(m, 3), DstT=INT32), np.int32(2)),
    "convolved": lambda r, m: op(
        "Conv2D", op("Reshape", r, ints(-1, 1, 3, 1)), np.ones((1, 2, 1, 2), np.float32), strides=[1] * 4,
        padding="SAME",
    ),
    "pooled": lambda r, m: op(
        "MaxPool", op("Reshape", r, ints(-1, 1, 3, 1)), ksize=[1, 1, 2, 1], strides=[1] * 4, padding="VALID"
    ),
    "normalized": lambda r, m: op(
        "FusedBatchNormV3", op("Reshape", r, ints(-1, 1, 1, 3)), TABLE[0], TABLE[1], TABLE[0], np.float32([1, 2, 3]),
        is_training=False,
    )[0],
    "product by an equation": lambda r, m: op("Einsum", [r, COLUMNS], equation="ij,jk->ik"),
    "sums by an equation": lambda r, m: op("Einsum", [r, r], equation="ij,ij->j"),
    "trace by an equation": lambda r, m: op("Einsum", [_turned(r), r], equation="ij,ji->"),
    "batched product": lambda r, m: op("BatchMatMulV3", r, COLUMNS, Tout=FLOAT),
    "conjugated": lambda r, m: op("ConjugateTranspose", r, ints(1, 0)),
    "places": lambda r, m: op("Where", op("Greater", r, np.float32(0))),
    "unique": lambda r, m: op("Unique", _ids(m, 2))[0],
    "numbers of unique": lambda r, m: op("Unique", _ids(m, 2))[1],
    "unique rows": lambda r, m: op("UniqueV2", op("Sign", r), ints(0))[0],
    "unique columns": lambda r, m: op("UniqueV2", op("Sign", r), ints(1))[0],
    "elements of rows": lambda r, m: op("GatherV2", r, op("ExpandDims", _ids(m, 3), np.int32(1)), np.int32(1),
                                        batch_dims=1),
    "columns": lambda r, m: op("GatherV2", r, ints(2, 0), np.int32(1)),
    "a row": lambda r, m: op("GatherV2", r, ints(0), np.int32(0)),
    "the second row": lambda r, m: op("GatherV2", r, np.int32(1), np.int32(0)),
    "a row behind the last": lambda r, m: op("GatherV2", r, _number(m), np.int32(0)),
    "all rows": lambda r, m: op("GatherV2", r, op("Range", np.int32(0), _number(m), np.int32(1)), np.int32(0)),
    "scattered": lambda r, m: op("ScatterNd", op("Where", m), r, np.array([5, 3])),
    "updated": lambda r, m: op("TensorScatterAdd", TABLE, op("Where", m), r),
    "counted": lambda r, m: op("Bincount", op("Cast", _ids(m, 3), DstT=INT32), np.int32(4), EMPTY),
    "weights": lambda r, m: op("Bincount", op("Cast", _ids(m, 3), DstT=INT32), np.int32(4), _first(r)),
    "parts": lambda r, m: op("DynamicPartition", r, op("Cast", _ids(m, 2), DstT=INT32), num_partitions=2)[1],
    **{f"segments: {n}": _segments(f"UnsortedSegment{n}") for n in ("Sum", "Prod", "Max", "Min")},
    "sorted segments": lambda r, m: op("SegmentSumV2", r, _ids(m, 5), np.int64(5)),
    "segments of unique": lambda r, m: (lambda u: op("UnsortedSegmentSum", r, u[1], op("Size", u[0])))(
        op("Unique", _ids(m, 2))
    ),
    "best of a vector": lambda r, m: op("TopKV2", _first(r), np.int32(2))[1],
    "best, of a size": lambda r, m: op("TopKV2", r, _number(m))[0],
    "best of columns": lambda r, m: op("TopKV2", _turned(r), _number(m))[0],
    "elements by rows of indices": lambda r, m: op("GatherNd", r, np.array([[0, 1], [2, 2]])),
    "positive elements": lambda r, m: op("GatherNd", r, op("Where", op("Greater", r, np.float32(0)))),
    "updates of other rows": lambda r, m: op("TensorScatterAdd", TABLE, op("Where", m), _slice(r, 0, 3)),
    "written over": lambda r, m: op("TensorScatterUpdate", r, np.array([[1]]), np.ones((1, 3), np.float32)),
    "segments behind the last": lambda r, m: op("UnsortedSegmentSum", r, _ids(m, 5), _number(m)),
    "scattered behind the last": lambda r, m: op(
        "ScatterNd", op("Where", m), _first(r), op("Pack", [_number64(m)])
    ),
    "scattered to as many columns": lambda r, m: op(
        "ScatterNd", np.array([[1], [0]]), TABLE.T[:2].copy(), op("Pack", [np.int64(2), _number64(m)])
    ),
    "band": lambda r, m: op("MatrixBandPart", op("MatMul", r, r, transpose_b=True), np.int64(0), np.int64(-1)),
    "square": lambda r, m: op("MatrixDiag", _first(r)),
    "columns of channels": lambda r, m: op("BiasAdd", _turned(r), _first(r)),
    "sums of channels": lambda r, m: op("BiasAddGrad", _turned(r)),
    "parts of columns": lambda r, m: op("DynamicPartition", _turned(r), ints(0, 1, 1), num_partitions=2)[1],
    "of a shape": lambda r, m: op("EnsureShape", r, shape=[None, 3]),
    "of two rows": lambda r, m: op("EnsureShape", r, shape=[2, None]),
    "of three rows, multiplied": lambda r, m: op("MatMul", op("EnsureShape", r, shape=[3, 3]), np.eye(3, dtype="f")),
    "of six rows": lambda r, m: op("EnsureShape", r, shape=[6, 3]),
    "broadcast to five": lambda r, m: op("BroadcastTo", r, ints(5, 3)),
    "broadcast to five, and summed": lambda r, m: op("Sum", op("BroadcastTo", r, ints(2, 5, 3)), ints(1)),
    "a row broadcast": lambda r, m: op("BroadcastTo", _slice(r, 0, 1), op("Shape", r)),
    # slices
    "the first row by its mask": lambda r, m: _slice(r, 5, 6, begin_mask=1, shrink_axis_mask=1),
    "first rows": lambda r, m: _slice(r, 0, 2),
    "without the first": lambda r, m: _slice(r, 1, 0, end_mask=1),
    "without the last": lambda r, m: _slice(r, 0, -1),
    "the last": lambda r, m: _slice(r, -1, 0, end_mask=1),
    "the last row": lambda r, m: _slice(r, -1, 0, shrink_axis_mask=1),
    "the third row": lambda r, m: _slice(r, 2, 0, shrink_axis_mask=1),
    "backwards": lambda r, m: _slice(r, 0, 0, -1, begin_mask=1, end_mask=1),
    "every other": lambda r, m: _slice(r, -2, -9, -2),
    "with an axis": lambda r, m: op(
        "StridedSlice", r, ints(0, 0, 0), ints(0, 3, 3), ints(1, 1, 2), new_axis_mask=1, end_mask=2
    ),
    "a column": lambda r, m: _first(r),
    "a block": lambda r, m: op("Slice", r, ints(0, 1), ints(-1, 2)),
    "two rows": lambda r, m: op("Slice", r, ints(0, 0), ints(2, -1)),
    "rows behind the first": lambda r, m: op("Slice", r, ints(1, 0), ints(-1, 3)),
    # shapes
    "flat": lambda r, m: op("Reshape", r, ints(-1)),
    "columns, flat": lambda r, m: op("Reshape", _turned(r), ints(-1)),
    "three rows": lambda r, m: op("Reshape", r, ints(3, -1)),
    "two rows of three": lambda r, m: op("Reshape", r, ints(2, 3)),
    "rows of six": lambda r, m: op("Reshape", r, ints(-1, 6)),
    "no rows": lambda r, m: op("Reshape", r, ints(0, -1)),
    "a shape of another": lambda r, m: op("Reshape", _turned(r), op("Shape", r)),
    "constants in rows": lambda r, m: op("Reshape", np.arange(12.0), op("Pack", [np.int32(-1), _number(m)], axis=0)),
    "a range": lambda r, m: op("Range", np.int32(1), _number(m), np.int32(2)),
    "a range downwards": lambda r, m: op("Range", _number(m), np.int32(0), np.int32(-1)),
    "a range from a size": lambda r, m: op("Range", _number(m), np.int32(2), np.int32(1)),
    "filled": lambda r, m: op("Fill", op("Shape", r), np.float32(2)),
    "filled, of a sum": lambda r, m: op("Fill", op("Pack", [_number(m) + np.int32(1), _number(m)], axis=0), np.int8(3)),
    "filled and added": lambda r, m: op("AddV2", op("Fill", op("Shape", r), np.float32(2)), r),
    "a row for each": lambda r, m: op("BroadcastTo", TABLE[0], op("Shape", r)),
    "a column for each": lambda r, m: op("BroadcastTo", op("ExpandDims", _first(r), np.int32(1)), op("Shape", r)),
    "random numbers": lambda r, m: op("Shape", op("RandomUniform", op("Shape", r), dtype=FLOAT)),
    "shapes": lambda r, m: op("ShapeN", [r, _turned(r)])[1],
}  # fmt: skip


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", MAKERS)
def test_results_are_those_of_eager_kernels(name: str, platform: str) -> None:
    make = MAKERS[name]
    check_all(lambda x, m: make(chosen(x, m), m), [(TABLE, m) for m in MASKS], platform)


#: What is made of two arrays of rows whose numbers must be equal.
PAIRS: dict[str, Make] = {
    "added": lambda a, b: op("AddN", [a, b]),
    "packed": lambda a, b: op("Pack", [a, b]),
    "gradient": lambda a, b: op("ReluGrad", a, b),
    "equal": lambda a, b: op("Equal", a, b),
    "by an equation": lambda a, b: op("Einsum", [a, b], equation="ij,ik->jk"),
    "loss": lambda a, b: op("SparseSoftmaxCrossEntropyWithLogits", a, op("Cast", _first(op("Sign", b)) * np.float32(0),
                                                                           DstT=INT32))[0],
    "segments": lambda a, b: op("UnsortedSegmentSum", a, op("Cast", op("Sign", _first(b)), DstT=INT32), np.int32(2)),
    "filled": lambda a, b: op("AddV2", op("Fill", op("Shape", a), np.float32(1)), b),
    "broadcast": lambda a, b: op("BroadcastTo", a, op("Shape", b)),
}  # fmt: skip


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", PAIRS)
def test_sizes_that_must_agree(name: str, platform: str) -> None:
    make, pairs = PAIRS[name], [(0, 0), (2, 2), (3, 3), (0, 2), (4, 0)]
    rows = [(TABLE, MASKS[i], MASKS[k]) for i, k in pairs]
    check_all(lambda x, m, n: make(chosen(x, m), chosen(x, n)), rows, platform)


REFUSED: dict[str, Make] = {
    "reflected": lambda r, m: op("MirrorPad", r, np.int32([[0, 0], [1, 1]]), mode="REFLECT"),
    "rolled": lambda r, m: op("Roll", r, np.int32(1), np.int32(0)),
    "repeated": lambda r, m: op("Tile", r, ints(2, 1)),
    "split": lambda r, m: op("Split", np.int32(0), r, num_split=1)[0],
    "other shapes are unequal": lambda r, m: op("Equal", r, r, incompatible_shape_error=False),
    "an equation with dots": lambda r, m: op("Einsum", [r, r], equation="...i,...i->..."),
    "training": lambda r, m: op(
        "FusedBatchNormV3", op("Reshape", r, ints(-1, 1, 1, 3)), TABLE[0], TABLE[1], EMPTY, EMPTY
    )[0],
}


@pytest.mark.parametrize("name", REFUSED)
def test_padding_is_not_read(name: str) -> None:
    """Ops whose results would depend on padding are refused."""
    make = REFUSED[name]
    error = runner(lambda x, m: make(chosen(x, m), m), (TABLE, MASKS[0]))("on", "interpreter", (TABLE, MASKS[0]))
    assert isinstance(error, UnimplementedError)
    assert "known only at run time" in error.message


def test_a_call_without_such_sizes_is_left_to_the_kernel() -> None:
    """Other nodes of a graph that knows sizes at run time are emitted as always."""
    run = runner(lambda x, m: op("Fill", ints(2, 3), op("Cast", _number(m), DstT=FLOAT)), (TABLE, MASKS[0]))
    (found,) = run("on", "interpreter", (TABLE, MASKS[0]))
    np.testing.assert_array_equal(found, np.full((2, 3), 3, np.float32))
