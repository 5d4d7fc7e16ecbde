"""Gradients of ops on arrays, of products and special functions against central differences."""

import numpy as np
import pytest
from support.graphs.gradient_checks import Case, check_gradient, complex_points, points

from cyxla import Graph, Session, gradients
from cyxla.core.framework.apply import apply_op


def ints(*values):
    return np.array(values, np.int32)


def scalar(value):
    return np.array(value, np.int32)


X, Y, SQUARE = points(2, 3), points(2, 3, seed=1), points(2, 4, 4)
IMAGE = points(1, 4, 4, 4)
SLICE = {"begin_mask": 1, "end_mask": 2, "ellipsis_mask": 0, "new_axis_mask": 4, "shrink_axis_mask": 0}
PLACES = np.array([[0, 1], [1, 2], [0, 1]], np.int32)
MIRROR = np.array([[1, 0], [1, 1]], np.int32)
OWN_PLACES = np.array([[0, 1], [1, 2]], np.int32)

ARRAYS = [
    *(Case(op, (X,)) for op in ("Identity", "Snapshot", "DeepCopy", "Copy", "GuaranteeConst", "OnesLike", "ZerosLike")),
    Case("IdentityN", ([X, Y],)),
    Case("EnsureShape", (X,), {"shape": [2, None]}),
    Case("PlaceholderWithDefault", (X,), {"shape": [2, 3]}),
    Case("Bitcast", (X,), {"type": "int64"}, outputs=()),
    Case("Reshape", (X, ints(3, -1))),
    Case("ExpandDims", (X, scalar(1))),
    Case("Squeeze", (X[:, None],)),
    Case("BroadcastTo", (X[:, :1], ints(4, 2, 3))),
    Case("Fill", (ints(2, 3), np.float64(2.5))),
    Case("LinSpace", (np.float64(1.0), np.float64(4.0), scalar(5))),
    Case("LinSpace", (np.float64(1.0), np.float64(4.0), scalar(1)), note="one"),
    Case("OneHot", (ints(2, 0, -1), scalar(3), np.float64(1.5), np.float64(-2.0))),
    Case("OneHot", (ints(2, 0, -1), scalar(3), np.float64(1.5), np.float64(-2.0)), {"axis": 0}, note="first"),
    Case("Select", (X > 0, X, Y)),
    Case("Select", (np.array([True, False]), X, Y), note="rows"),
    Case("SelectV2", (X > 0, X, Y[:1])),
    Case("SelectV2", (np.array([True, False])[:, None], X[0], np.float64(3.0)), note="broadcast"),
    Case("ParallelConcat", ([X[:1], Y[:1]],), {"shape": [2, 3]}),
    Case("InplaceAdd", (X, ints(1), Y[:1])),
    Case("InplaceSub", (X, ints(1), Y[:1])),
    Case("InplaceUpdate", (X, ints(1), Y[:1])),
]
DIAGONALS = [
    Case("Diag", (X,)),
    Case("DiagPart", (points(2, 3, 2, 3),)),
    Case("MatrixDiag", (X,)),
    Case("MatrixDiagPart", (points(2, 3, 4),)),
    Case("MatrixSetDiag", (points(2, 3, 4), points(2, 3))),
    Case("MatrixBandPart", (SQUARE, scalar(1), scalar(0))),
    Case("MatrixBandPart", (SQUARE, np.array(-1), np.array(1)), note="upper"),
    Case("MatrixDiagV2", (points(2, 3), scalar(1), scalar(3), scalar(5), np.float64(0.5))),
    Case("MatrixDiagPartV2", (points(2, 3, 4), ints(-1, 1), np.float64(0.5)), wrt=(0,)),
    Case("MatrixSetDiagV2", (points(2, 3, 4), points(2, 3), scalar(1))),
    *(
        Case("MatrixDiagV3", (points(2, 3, 3), ints(-1, 1), scalar(3), scalar(4), np.float64(0.5)), {"align": align})
        for align in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")
    ),
    *(
        Case("MatrixDiagPartV3", (points(2, 3, 4), ints(-1, 1), np.float64(0.5)), {"align": align}, wrt=(0,))
        for align in ("LEFT_RIGHT", "RIGHT_LEFT")
    ),
    Case("MatrixSetDiagV3", (points(2, 3, 4), points(2, 3, 3), ints(-1, 1)), {"align": "LEFT_LEFT"}),
]
SLICES = [
    Case("Concat", (scalar(1), [X, Y[:, :2]])),
    Case("ConcatV2", ([X, Y[:1], X[:1]], scalar(0))),
    Case("ConcatV2", ([X, Y[:, :1]], scalar(-1)), note="last"),
    Case("Split", (scalar(1), points(2, 4)), {"num_split": 2}),
    Case("SplitV", (points(5, 2), ints(2, 3), scalar(0)), {"num_split": 2}),
    Case("Pack", ([X, Y],), {"axis": 1}),
    Case("Unpack", (X,), {"num": 3, "axis": 1}),
    Case("Slice", (X, ints(0, 1), ints(2, 1))),
    Case("StridedSlice", (points(3, 4, 5), ints(9, 1, 0), ints(2, 9, 0), ints(1, 2, 1)), SLICE),
    Case("StridedSliceGrad", (ints(4), ints(3), ints(0), ints(-2), points(2))),
    Case("TensorStridedSliceUpdate", (X, ints(0, 0), ints(2, 2), ints(1, 1), Y[:, :2])),
    Case("TensorStridedSliceUpdate", (X, ints(0, 0), ints(2, 2), ints(1, 1), Y[:, :1]), note="broadcast"),
    Case("Transpose", (points(2, 3, 4), ints(2, 0, 1))),
    Case("ConjugateTranspose", (complex_points(2, 3), ints(1, 0))),
    Case("Reverse", (X, np.array([True, False]))),
    Case("ReverseV2", (X, ints(1))),
    Case("ReverseSequence", (points(3, 4), ints(2, 4, 1)), {"seq_dim": 1}),
    Case("Roll", (X, ints(1, -1), ints(0, 1))),
    Case("Tile", (X, ints(2, 3))),
    Case("SpaceToDepth", (IMAGE,), {"block_size": 2}),
    Case("DepthToSpace", (IMAGE,), {"block_size": 2}),
    Case("SpaceToBatch", (IMAGE, np.array([[0, 0], [1, 1]], np.int32)), {"block_size": 2}),
    Case("BatchToSpace", (points(4, 2, 2, 1), np.array([[0, 1], [1, 0]], np.int32)), {"block_size": 2}),
    Case("SpaceToBatchND", (points(1, 4, 3), ints(2), np.array([[1, 1]], np.int32))),
    Case("BatchToSpaceND", (points(2, 4, 3), ints(2), np.array([[1, 1]], np.int32))),
    Case("Pad", (X, np.array([[1, 0], [2, 1]], np.int32))),
    Case("PadV2", (X, np.array([[1, 0], [2, 1]], np.int32), np.float64(3.0))),
    *(Case("MirrorPad", (X, MIRROR), {"mode": mode}, note=mode) for mode in ("REFLECT", "SYMMETRIC")),
    Case("MirrorPadGrad", (points(3, 5), MIRROR), {"mode": "REFLECT"}),
    Case("ExtractImagePatches", (points(2, 4, 5, 2),),
         {"ksizes": [1, 2, 3, 1], "strides": [1, 1, 2, 1], "rates": [1, 2, 1, 1], "padding": "SAME"}),
]  # fmt: skip
PICKS = [
    Case("Gather", (X, np.array([[1, 0], [1, 1]], np.int32))),
    *(Case("GatherV2", (points(2, 3, 4), ints(1, 0, 1), scalar(axis)), note=str(axis)) for axis in (0, 1, -1)),
    Case("GatherV2", (points(2, 3, 4), scalar(1), scalar(1)), note="scalar"),
    Case(
        "GatherV2", (points(2, 3, 4), np.array([[0, 2], [1, 1]], np.int32), scalar(1)), {"batch_dims": 1}, note="batch"
    ),
    Case(
        "GatherV2", (points(2, 3, 4, 2), np.array([[0, 3], [1, 1]], np.int32), scalar(2)), {"batch_dims": 1}, note="mid"
    ),
    Case("GatherNd", (X, PLACES)),
    Case("GatherNd", (X, np.array([[1], [0], [1]], np.int32)), note="rows"),
    Case("ScatterNd", (PLACES, points(3), ints(2, 3))),
    Case("ScatterNdNonAliasingAdd", (X, PLACES, points(3))),
    Case("TensorScatterAdd", (X, PLACES, points(3))),
    Case("TensorScatterSub", (X, PLACES, points(3))),
    Case("TensorScatterUpdate", (X, OWN_PLACES, points(2))),
    Case("TensorScatterMax", (X, OWN_PLACES, points(2))),
    Case("TensorScatterMin", (X, OWN_PLACES, points(2))),
]
TURNS = [(False, False), (False, True), (True, False), (True, True)]
PRODUCTS = [
    *(
        Case("MatMul", (points(*((3, 2) if a else (2, 3))), points(*((4, 3) if b else (3, 4)))),
             {"transpose_a": a, "transpose_b": b}, note=f"{a}{b}")
        for a, b in TURNS
    ),
    Case("MatMul", (complex_points(2, 3), complex_points(4, 3)), {"transpose_b": True}, note="complex"),
    *(
        Case("BatchMatMulV2",
             (complex_points(2, *((3, 2) if a else (2, 3))), complex_points(*((4, 3) if b else (3, 4)))),
             {"adj_x": a, "adj_y": b}, note=f"{a}{b}")
        for a, b in TURNS
    ),
    Case("BatchMatMul", (points(2, 2, 3), points(2, 3, 1))),
    Case("BatchMatMulV3", (points(1, 2, 3), points(2, 3, 1)), {"Tout": "double"}),
    Case("Cross", (points(2, 3), points(2, 3, seed=3))),
    Case("AddN", ([X, Y, X],)),
    Case("L2Loss", (X,)),
    Case("Cast", (X,), {"DstT": "complex128"}),
    Case("Cast", (X,), {"DstT": "int32"}, outputs=()),
    Case("ClipByValue", (X, np.float64(-0.5), np.float64(0.7))),
    Case("NthElement", (points(2, 5), scalar(2))),
]  # fmt: skip
UNIT, LARGER = points(2, 3, low=0.1, high=0.9), points(2, 3, low=1.5, high=3.0, seed=2)
SPECIAL = [
    *(Case(op, (LARGER,)) for op in ("Lgamma", "Digamma")),
    *(Case(op, (UNIT,)) for op in ("Erfinv", "Ndtri")),
    *(Case(op, (X,)) for op in ("BesselI0", "BesselI0e", "BesselI1", "BesselI1e")),
    Case("Igamma", (UNIT + 1, LARGER)),
    Case("Igammac", (UNIT + 1, LARGER)),
    Case("Zeta", (LARGER, UNIT + 1), wrt=(1,)),
    Case("Polygamma", (np.array([[1.0, 2.0, 3.0]]), LARGER), wrt=(1,)),
    Case("Betainc", (LARGER, UNIT + 1, UNIT), wrt=(2,)),
]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("case", [*ARRAYS, *DIAGONALS, *SLICES, *PICKS, *PRODUCTS, *SPECIAL], ids=str)
def test_gradient_is_the_slope(case):
    check_gradient(case)


@pytest.mark.parametrize("turned", TURNS)
def test_sparse_mat_mul(turned):
    """It computes in f32 alone, so its gradient is held against that of MatMul."""
    x, y = points(2, 3).astype(np.float32), points(3, 4).astype(np.float32)
    attrs = {"transpose_a": turned[0], "transpose_b": turned[1]}
    found = []
    for op in ("SparseMatMul", "MatMul"):
        graph = Graph()
        with graph.as_default():
            a = graph.constant(x.T.copy() if turned[0] else x)
            b = graph.constant(y.T.copy() if turned[1] else y)
            z = apply_op(op, a, b, **attrs)
        found.append(Session(graph).run(gradients(z, [a, b], [points(2, 4).astype(np.float32)])))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
