"""Sample inputs for every op with a stateless kernel.

An entry is ``(inputs, attributes)`` of an op. An input is a tuple of sizes, for random numbers of the input's type; a
list of such tuples, for an input that is a list; or `at(...)` with given numbers.
"""

# ruff: noqa: E501
from __future__ import annotations

from typing import Any

import numpy as np


class At:
    """Given numbers of an input."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"at({self.value})"


def at(value: Any) -> At:
    return At(value)


M, V, C, N = (2, 3), (4,), (2, 3, 4), ()  # matrix, vector, cube, number
SQUARE, IMAGE, VOLUME = (3, 3), (2, 5, 6, 3), (1, 4, 5, 4, 2)

# Ops whose inputs all have the same shape, which may be any; the others are in the table below.
ELEMENTWISE = [
    "Abs", "Acos", "Acosh", "Add", "AddV2", "Angle", "ApproximateEqual", "Asin", "Asinh", "Atan", "Atan2", "Atanh",
    "BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "Betainc", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Cast",
    "Ceil", "Complex", "ComplexAbs", "Conj", "Copy", "Cos", "Cosh", "Digamma", "Div", "DivNoNan", "Elu", "EluGrad",
    "Equal", "Erf", "Erfc", "Erfinv", "Exp", "Expm1", "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient",
    "Floor", "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "Identity", "Igamma", "IgammaGradA", "Igammac",
    "Imag", "Inv", "Invert", "IsFinite", "IsInf", "IsNan", "L2Loss", "LeakyRelu", "LeakyReluGrad", "LeftShift",
    "Less", "LessEqual", "Lgamma", "Log", "Log1p", "LogicalAnd", "LogicalNot", "LogicalOr", "Maximum", "Minimum",
    "Mod", "Mul", "MulNoNan", "Ndtri", "Neg", "NextAfter", "NotEqual", "OnesLike", "Polygamma", "PopulationCount",
    "Pow", "PreventGradient", "RandomGammaGrad", "Rank", "Real", "RealDiv", "Reciprocal", "ReciprocalGrad", "Relu",
    "Relu6", "Relu6Grad", "ReluGrad", "RightShift", "Rint", "Round", "Rsqrt", "RsqrtGrad", "Selu", "SeluGrad",
    "Shape", "Sigmoid", "SigmoidGrad", "Sign", "Sin", "Sinh", "Size", "Snapshot", "Softplus", "SoftplusGrad",
    "Softsign", "SoftsignGrad", "Sqrt", "SqrtGrad", "Square", "SquaredDifference", "StopGradient", "Sub", "Tan",
    "Tanh", "TanhGrad", "TruncateDiv", "TruncateMod", "Where", "Xdivy", "Xlog1py", "Xlogy", "ZerosLike", "Zeta",
]  # fmt: skip

_CONV = {"strides": [1, 2, 1, 1], "padding": "SAME"}
_CONV3 = {"strides": [1, 1, 2, 1, 1], "padding": "VALID"}
_POOL = {"ksize": [1, 2, 3, 1], "strides": [1, 2, 1, 1], "padding": "VALID"}
_POOL3 = {"ksize": [1, 2, 2, 1, 1], "strides": [1, 1, 2, 1, 1], "padding": "SAME"}
_PAIRS = at([[1, 0], [0, 2]])
_STRIDED = (at([0, 2]), at([2, 0]), at([1, -1]))
_RESIZE = {"half_pixel_centers": True}
_NMS = ((5, 4), (5,), at(3))

SAMPLES: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    # math_ops, math_reduction_ops
    "AccumulateNV2": [(([M, M, M],), {"shape": [2, 3]}), (([(0, 2)],), {"shape": [None, 2]})],
    "AddN": [(([M, M, M],), {}), (([(0, 2)],), {})],
    "MatMul": [(((2, 3), (3, 4)), {}), (((3, 2), (4, 3)), {"transpose_a": True, "transpose_b": True}), (((0, 3), (3, 2)), {}), (((2, 0), (0, 3)), {})],
    "BatchMatMul": [(((2, 2, 3), (2, 3, 4)), {}), (((0, 2, 3), (0, 3, 4)), {})],
    "BatchMatMulV2": [(((2, 1, 2, 3), (3, 3, 4)), {}), (((2, 3, 2), (2, 4, 3)), {"adj_x": True, "adj_y": True})],
    "BatchMatMulV3": [(((2, 2, 3), (3, 4)), {"Tout": "float32"})],
    "SparseMatMul": [(((2, 3), (3, 4)), {}), (((3, 2), (4, 3)), {"transpose_a": True, "transpose_b": True})],
    "Bucketize": [((C,), {"boundaries": [0.1, 0.5, 3.0]}), (((0,),), {"boundaries": []})],
    "Bincount": [((V, at(3), V), {}), (((0,), at(2), (0,)), {})],
    "DenseBincount": [((V, at(7), V), {}), ((M, at(7), M), {"binary_output": True})],
    "ClipByValue": [((C, N, N), {}), (((0, 2), N, N), {})],
    "Cross": [((M, M), {}), (((0, 3), (0, 3)), {})],
    "RaggedBincount": [((at([0, 2, 2, 4]), at([1, 0, 1, 1]), at(3), at([])), {}), ((at([0, 1, 2]), at([1, 5]), at(3), (2,)), {})],
    "SparseBincount": [((at([[0, 1], [2, 0], [2, 1]]), at([1, 0, 0]), at([3, 2]), at(2), at([])), {}), ((at([[0], [2]]), at([1, 1]), at([3]), at(2), (2,)), {"binary_output": True})],
    "HistogramFixedWidth": [((C, at([0, 3]), at(4)), {}), (((0,), at([0, 3]), at(4)), {})],
    "NthElement": [((C, at(1)), {}), ((C, at(1)), {"reverse": True})],
    "Range": [((at(2), at(11), at(3)), {}), ((at(3), at(3), at(1)), {})],
    **{op: [((C, at([0, 2])), {}), ((C, at(-1)), {"keep_dims": True}), (((0, 3), at([0])), {}), ((N, at([])), {})]
       for op in ("Sum", "Prod", "Mean", "Max", "Min", "EuclideanNorm", "All", "Any")},
    **{op: [((C, at(1)), {}), (((3, 0, 2), at(0)), {})] for op in ("ArgMax", "ArgMin")},
    **{op: [((C, at(1)), {}), ((C, at(-1)), {"exclusive": True, "reverse": True}), (((0, 2), at(0)), {})]
       for op in ("Cumsum", "Cumprod", "CumulativeLogsumexp")},
    # nn
    "BiasAdd": [((IMAGE, (3,)), {}), (((2, 3, 4, 5), (3,)), {"data_format": "NCHW"}), (((0, 3), (3,)), {})],
    "BiasAddV1": [((M, (3,)), {})],
    "BiasAddGrad": [((IMAGE,), {}), ((IMAGE,), {"data_format": "NCHW"}), (((0, 3),), {})],
    "Softmax": [((M,), {}), (((0, 3),), {}), (((2, 0),), {})],
    "LogSoftmax": [((M,), {}), (((0, 3),), {})],
    "SoftmaxCrossEntropyWithLogits": [((M, M), {}), (((1, 3), M), {}), (((0, 3), (0, 3)), {})],
    "SparseSoftmaxCrossEntropyWithLogits": [((M, at([2, 0])), {}), (((0, 3), at([])), {})],
    "TopK": [((C,), {"k": 2})],
    "ApproxTopK": [((C,), {"k": 2}), ((C,), {"k": 1, "reduction_dimension": 1, "is_max_k": False})],
    "LSTMBlockCell": [(((2, 3), (2, 4), (2, 4), (7, 16), V, V, V, (16,)), {"use_peephole": use}) for use in (True, False)],
    **{op: [((at(3), (4, 2, 3), (2, 4), (2, 4), (7, 16), V, V, V, (16,)), {})] for op in ("BlockLSTM", "BlockLSTMV2")},
    "GRUBlockCell": [(((2, 3), (2, 4), (7, 8), (7, 4), (8,), V), {})],
    "TopKV2": [((C, at(2)), {}), (((0, 3), at(1)), {}), ((C, at(0)), {})],
    "InTopK": [(((3, 4), at([0, 1, 9])), {"k": 2})],
    "InTopKV2": [(((3, 4), at([0, 1, 9]), at(2)), {})],
    "DataFormatDimMap": [((at([0, -1, 3]),), {}), ((at([]),), {})],
    "DataFormatVecPermute": [((at([1, 2, 3, 4]),), {}), ((at([[1, 2], [3, 4], [5, 6], [7, 8]]),), {})],
    "Conv2D": [((IMAGE, (3, 2, 3, 4)), _CONV), ((IMAGE, (3, 2, 1, 6)), _CONV), (((0, 5, 6, 3), (3, 2, 3, 4)), _CONV)],
    "Conv2DBackpropInput": [((at(IMAGE), (3, 2, 3, 4), (2, 3, 6, 4)), _CONV)],
    "Conv2DBackpropFilter": [((IMAGE, at([3, 2, 3, 4]), (2, 3, 6, 4)), _CONV)],
    "Conv2DBackpropInputV2": [((IMAGE, (3, 2, 3, 4), (2, 3, 6, 4)), _CONV)],
    "Conv2DBackpropFilterV2": [((IMAGE, (3, 2, 3, 4), (2, 3, 6, 4)), _CONV)],
    "FusedPadConv2D": [((IMAGE, at([[0, 0], [1, 1], [1, 2], [0, 0]]), (3, 2, 3, 4)), {**_CONV, "mode": "REFLECT"})],
    "FusedResizeAndPadConv2D": [((IMAGE, at([4, 8]), at([[0, 0], [1, 1], [1, 2], [0, 0]]), (3, 2, 3, 4)), {**_CONV, "mode": "SYMMETRIC"})],
    "_FusedConv2D": [((IMAGE, (3, 2, 3, 4), [(4,)], []), {**_CONV, "fused_ops": ["BiasAdd", "Relu"], "num_args": 1})],
    "_FusedDepthwiseConv2dNative": [((IMAGE, (3, 2, 3, 2), [(6,)]), {"strides": [1, 2, 2, 1], "padding": "SAME", "fused_ops": ["BiasAdd", "Relu6"]})],
    "_FusedMatMul": [(((2, 3), (3, 4), [(4,)]), {"fused_ops": ["BiasAdd", act]}) for act in ("Elu", "GeluExact")],
    "Conv3D": [((VOLUME, (2, 3, 2, 2, 3)), _CONV3)],
    "Conv3DBackpropInputV2": [((at(VOLUME), (2, 3, 2, 2, 3), (1, 3, 2, 3, 3)), _CONV3)],
    "Conv3DBackpropFilterV2": [((VOLUME, at([2, 3, 2, 2, 3]), (1, 3, 2, 3, 3)), _CONV3)],
    "Conv": [((IMAGE, (3, 2, 3, 4)), _CONV)],
    "DepthwiseConv2dNative": [((IMAGE, (3, 2, 3, 2)), {"strides": [1, 2, 2, 1], "padding": "SAME"})],
    "DepthwiseConv2dNativeBackpropInput": [((at(IMAGE), (3, 2, 3, 2), (2, 3, 3, 6)), {"strides": [1, 2, 2, 1], "padding": "SAME"})],
    "DepthwiseConv2dNativeBackpropFilter": [((IMAGE, at([3, 2, 3, 2]), (2, 3, 3, 6)), {"strides": [1, 2, 2, 1], "padding": "SAME"})],
    "Dilation2D": [((IMAGE, (3, 2, 3)), {"strides": [1, 1, 1, 1], "rates": [1, 1, 2, 1], "padding": "SAME"})],
    "AvgPool": [((IMAGE,), _POOL), (((0, 5, 6, 3),), _POOL)],
    "AvgPoolGrad": [((at(IMAGE), (2, 2, 4, 3)), _POOL)],
    "AvgPool3D": [((VOLUME,), _POOL3)],
    "AvgPool3DGrad": [((at(VOLUME), (1, 4, 3, 4, 2)), _POOL3)],
    "MaxPool": [((IMAGE,), _POOL), (((0, 5, 6, 3),), _POOL)],
    "MaxPoolGrad": [((IMAGE, (2, 2, 4, 3), (2, 2, 4, 3)), _POOL)],
    "MaxPoolGradGrad": [((IMAGE, (2, 2, 4, 3), IMAGE), _POOL)],
    "MaxPoolV2": [((IMAGE, at([1, 2, 3, 1]), at([1, 2, 1, 1])), {"padding": "VALID"})],
    "MaxPoolGradV2": [((IMAGE, (2, 2, 4, 3), (2, 2, 4, 3), at([1, 2, 3, 1]), at([1, 2, 1, 1])), {"padding": "VALID"})],
    "MaxPoolGradGradV2": [((IMAGE, (2, 2, 4, 3), IMAGE, at([1, 2, 3, 1]), at([1, 2, 1, 1])), {"padding": "VALID"})],
    "MaxPool3D": [((VOLUME,), _POOL3)],
    "MaxPool3DGrad": [((VOLUME, (1, 4, 3, 4, 2), (1, 4, 3, 4, 2)), _POOL3)],
    "MaxPool3DGradGrad": [((VOLUME, (1, 4, 3, 4, 2), VOLUME), _POOL3)],
    "MaxPoolWithArgmax": [((IMAGE,), _POOL)],
    "MaxPoolGradWithArgmax": [(((1, 2, 2, 1), (1, 1, 1, 1), at([[[[3]]]])), {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"})],
    "MaxPoolGradGradWithArgmax": [(((1, 2, 2, 1), (1, 2, 2, 1), at([[[[3]]]])), {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"})],
    **{op: [((IMAGE, (3,), (3,), (0,), (0,)), {}), ((IMAGE, (3,), (3,), (3,), (3,)), {"is_training": False})]
       for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")},
    **{op: [((IMAGE, IMAGE, (3,), (3,), (3,)), {}), ((IMAGE, IMAGE, (3,), (3,), (3,)), {"is_training": False})]
       for op in ("FusedBatchNormGrad", "FusedBatchNormGradV2")},
    "FusedBatchNormGradV3": [((IMAGE, IMAGE, (3,), (3,), (3,), (0,)), {})],
    "_FusedBatchNormEx": [((IMAGE, (3,), (3,), (3,), (3,), [IMAGE]), {"is_training": False, "activation_mode": "Relu"})],
    "BatchNormWithGlobalNormalization": [((IMAGE, (3,), (3,), (3,), (3,)), {"variance_epsilon": 0.1, "scale_after_normalization": True})],
    "LRN": [((IMAGE,), {}), (((0, 2, 2, 3),), {})],
    "LRNGrad": [((IMAGE, IMAGE, IMAGE), {})],
    # arrays
    "Bitcast": [((M,), {"type": "uint8"}), (((0,),), {"type": "uint8"})],
    "BroadcastArgs": [((at([2, 1]), at([4, 1, 3])), {}), ((at([]), at([2])), {})],
    "BroadcastGradientArgs": [((at([2, 1]), at([4, 1, 3])), {}), ((at([]), at([2])), {})],
    "BroadcastTo": [(((2, 1), at([3, 2, 4])), {}), ((N, at([0, 2])), {})],
    "EnsureShape": [((M,), {"shape": [2, None]})],
    "ExpandDims": [((M, at(-2)), {}), ((N, at(0)), {})],
    "Squeeze": [(((1, 3, 1),), {}), (((1, 3, 1),), {"squeeze_dims": [-1]}), ((N,), {})],
    "Fill": [((at([2, 0]), N), {}), ((at([]), N), {}), ((at([2, 3]), N), {})],
    "InvertPermutation": [((at([2, 0, 1]),), {}), ((at([]),), {})],
    "LinSpace": [((N, N, at(5)), {}), ((N, N, at(1)), {})],
    "ListDiff": [((V, (2,)), {}), (((0,), (0,)), {})],
    "OneHot": [((at([[0, 2], [9, 1]]), at(3), N, N), {"axis": 1}), ((at([]), at(2), N, N), {})],
    "ParallelConcat": [(([(1, 3), (1, 3)],), {"shape": [2, 3]})],
    "PlaceholderWithDefault": [((M,), {"shape": [2, 3]})],
    "Reshape": [((C, at([4, -1])), {}), (((0, 3), at([-1, 3])), {}), ((N, at([1, 1])), {})],
    "ShapeN": [(([M, N, (0, 2)],), {})],
    "IdentityN": [(([M, N],), {})],
    **{op: [((V,), {}), (((0,),), {})] for op in ("Unique", "UniqueWithCounts")},
    "UniqueV2": [((M, at([0])), {}), ((V, at([])), {})],
    "Diag": [((M,), {})],
    "DiagPart": [(((2, 3, 2, 3),), {})],
    "MatrixBandPart": [(((2, 3, 4), at(1), at(-1)), {}), (((0, 2, 2), at(0), at(0)), {})],
    "BatchMatrixBandPart": [(((2, 3, 4), at(1), at(-1)), {})],
    "BatchMatrixDiag": [((M,), {})],
    "MatrixDiag": [((M,), {}), (((2, 0),), {})],
    "MatrixDiagPart": [((C,), {}), (((0, 3, 2),), {})],
    "MatrixSetDiag": [((C, (2, 3)), {})],
    "MatrixDiagV2": [((M, at([0, 1]), at(-1), at(-1), N), {})],
    "MatrixDiagV3": [((M, at([-1, 0]), at(4), at(-1), N), {"align": "LEFT_RIGHT"})],
    "MatrixDiagPartV2": [((C, at([-1, 1]), N), {})],
    "MatrixDiagPartV3": [((C, at([-1, 1]), N), {"align": "RIGHT_RIGHT"})],
    "MatrixSetDiagV2": [((C, (2, 3), at(1)), {})],
    "MatrixSetDiagV3": [((C, (2, 2, 3), at([0, 1])), {})],
    **{op: [((at([[1, 3, 5], [2, 2, 9]]), at([[3, 0], [2, 9]])), {})] for op in ("LowerBound", "UpperBound")},
    "Select": [((M, M, M), {}), (((2,), C, C), {}), ((N, C, C), {})],
    "SelectV2": [(((3,), M, N), {}), (((0, 1), (1, 3), N), {})],
    "ToBool": [((N,), {}), ((M,), {}), (((0,),), {})],
    **{op: [((M, at([1, 0]), M), {})] for op in ("InplaceUpdate", "InplaceAdd", "InplaceSub")},
    "BatchToSpace": [(((4, 1, 2, 1), at([[0, 0], [1, 0]])), {"block_size": 2})],
    "BatchToSpaceND": [(((6, 2, 1, 3), at([2, 3]), at([[0, 1], [0, 0]])), {})],
    "SpaceToBatch": [(((1, 3, 2, 1), at([[0, 1], [0, 0]])), {"block_size": 2})],
    "SpaceToBatchND": [(((1, 3, 2, 3), at([2, 2]), at([[0, 1], [0, 0]])), {}), (((0, 4), at([2]), at([[0, 0]])), {})],
    "SpaceToDepth": [(((1, 4, 2, 3),), {"block_size": 2}), (((1, 3, 4, 2),), {"block_size": 2, "data_format": "NCHW"})],
    "DepthToSpace": [(((1, 2, 1, 8),), {"block_size": 2}), (((1, 8, 1, 2),), {"block_size": 2, "data_format": "NCHW"})],
    "Concat": [((at(1), [M, (2, 1)]), {})],
    "ConcatV2": [(([M, (2, 1)], at(-1)), {}), (([(0, 2), (0, 2)], at(0)), {})],
    "ConcatOffset": [((at(1), [at([2, 3]), at([2, 1])]), {})],
    "Pack": [(([M, M],), {"axis": -1}), (([N, N],), {})],
    "Unpack": [((M,), {"num": 3, "axis": 1})],
    "Split": [((at(1), (2, 4)), {"num_split": 2})],
    "SplitV": [(((2, 5), at([2, -1]), at(1)), {"num_split": 2})],
    "Slice": [((M, at([0, 1]), at([-1, 2])), {}), ((M, at([0, 1]), at([0, 2])), {})],
    "StridedSlice": [((M, *_STRIDED), {}), ((M, *_STRIDED), {"shrink_axis_mask": 1}), ((M, *_STRIDED), {"new_axis_mask": 1})],
    "StridedSliceGrad": [((at([2, 3]), *_STRIDED, (2, 2)), {})],
    "TensorStridedSliceUpdate": [((M, *_STRIDED, (2, 2)), {})],
    "Tile": [((M, at([2, 0])), {}), ((M, at([1, 3])), {}), ((N, at([])), {})],
    "Pad": [((M, _PAIRS), {}), (((0, 2), _PAIRS), {})],
    "PadV2": [((M, _PAIRS, N), {})],
    "MirrorPad": [((M, _PAIRS), {"mode": "REFLECT"}), ((M, _PAIRS), {"mode": "SYMMETRIC"})],
    "MirrorPadGrad": [(((3, 5), _PAIRS), {"mode": "SYMMETRIC"})],
    "Transpose": [((C, at([2, 0, 1])), {}), (((0, 2), at([1, 0])), {}), ((N, at([])), {})],
    "ConjugateTranspose": [((C, at([2, 0, 1])), {})],
    "Reverse": [((M, at([True, False])), {})],
    "ReverseV2": [((C, at([-1, 0])), {}), (((0, 2), at([0])), {})],
    "ReverseSequence": [((M, at([2, 0])), {"seq_dim": 1}), (((0, 2), at([])), {"seq_dim": 1})],
    "Roll": [((M, at([1, -2]), at([0, 1])), {}), ((V, at(3), at(0)), {})],
    "Gather": [((M, at([[1, 0]])), {}), ((M, at([])), {})],
    "GatherV2": [((C, at([2, 0]), at(1)), {}), ((M, at([[0], [2]]), at(1)), {"batch_dims": 1})],
    "GatherNd": [((C, at([[1, 2], [0, 0]])), {}), ((M, at([[]])), {}), ((M, at([[9]])), {"bad_indices_policy": "IGNORE"})],
    "ScatterNd": [((at([[1], [3], [1]]), (3, 2), at([4, 2])), {})],
    **{op: [((M, at([[1], [0]]), (2, 3)), {}), ((M, at([[1, 1], [1, 1]]), (2,)), {})]
       for op in ("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin", "ScatterNdNonAliasingAdd")},
    "ExtractImagePatches": [((IMAGE,), {"ksizes": [1, 2, 2, 1], "strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1], "padding": "SAME"})],
    "DynamicPartition": [((M, at([1, 0])), {"num_partitions": 3})],
    "DynamicStitch": [(([at([0, 2]), at([1])], [M, (1, 3)]), {})],
    "ParallelDynamicStitch": [(([at([0, 2]), at([1])], [M, (1, 3)]), {})],
    # segments, sparse tensors
    **{op: [(((4, 2), at([0, 0, 2, 2])), {}), (((0, 2), at([])), {})] for op in ("SegmentSum", "SegmentProd", "SegmentMax", "SegmentMin", "SegmentMean")},
    **{op: [(((4, 2), at([0, 0, 2, 2]), at(4)), {})] for op in ("SegmentSumV2", "SegmentProdV2", "SegmentMaxV2", "SegmentMinV2")},
    **{op: [(((4, 2), at([2, 0, 2, -1]), at(3)), {}), (((2, 3), at([[0, 1, 1], [0, 0, 1]]), at(2)), {})]
       for op in ("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin")},
    **{op: [(((4, 2), at([1, 1, 3]), at([0, 0, 1])), {})] for op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")},
    "SparseToDense": [((at([[0, 1], [1, 0]]), at([2, 3]), (2,), N), {}), ((at([1, 2]), at([4]), N, N), {})],
    "SparseTensorDenseMatMul": [((at([[0, 1], [2, 0]]), (2,), at([3, 2]), (2, 4)), {}), ((at([[0, 1], [2, 0]]), (2,), at([3, 2]), (3, 4)), {"adjoint_a": True})],
    "SparseReduceSum": [((at([[0, 1], [2, 0]]), (2,), at([3, 2]), at([1])), {"keep_dims": True})],
    "EditDistance": [((at([[0, 0], [0, 1]]), (2,), at([2, 2]), at([[0, 0], [1, 0]]), (2,), at([2, 3])), {})],
    "CTCLoss": [(((4, 2, 3), at([[0, 0], [0, 1], [1, 0]]), at([1, 0, 1]), at([4, 3])), {})],
    "SparseReshape": [((at([[0, 1], [2, 0]]), at([3, 2]), at([2, -1])), {})],
    "SparseFillEmptyRows": [((at([[0, 1], [2, 0]]), (2,), at([3, 2]), N), {})],
    # linear algebra, transforms
    "Cholesky": [((at([[4, 1], [1, 3]]),), {}), (((0, 0),), {})],
    "CholeskyGrad": [((at([[2, 0], [1, 3]]), (2, 2)), {})],
    "Einsum": [(([M, (3, 4)],), {"equation": "ij,jk->ik"}), (([C],), {"equation": "a...->..."})],
    **{op: [((at([[4, 1], [1, 3]]),), {})] for op in ("LogMatrixDeterminant", "MatrixDeterminant", "Lu", "MatrixExponential", "MatrixSquareRoot", "MatrixLogarithm", "SelfAdjointEig")},
    "MatrixInverse": [((at([[4, 1], [1, 3]]),), {}), ((at([[4, 1], [2, 3]]),), {"adjoint": True}), (((0, 0),), {})],
    "MatrixSolve": [((at([[4, 1], [1, 3]]), (2, 3)), {}), (((0, 0), (0, 2)), {})],
    "MatrixTriangularSolve": [((at([[4, 0], [1, 3]]), (2, 3)), {}), ((at([[4, 0], [1, 3]]), (5, 2, 3)), {"adjoint": True})],
    "Qr": [((SQUARE,), {}), (((3, 2),), {"full_matrices": True}), (((0, 2),), {})],
    "SelfAdjointEigV2": [((at([[4, 1], [1, 3]]),), {}), ((at([[4, 1], [1, 3]]),), {"compute_v": False}), (((0, 0),), {})],
    "Svd": [((M,), {}), ((M,), {"full_matrices": True}), ((M,), {"compute_uv": False}), (((2, 0),), {})],
    "TridiagonalMatMul": [(((1, 3), (1, 3), (1, 3), (3, 2)), {})],
    "TridiagonalSolve": [((at([[1, 1, 0], [4, 5, 6], [0, 1, 1]]), (3, 2)), {}), ((at([[1, 1, 0], [4, 5, 6], [0, 1, 1]]), (3, 2)), {"partial_pivoting": False})],
    **{op: [((C,), {}), (((0, 3, 4),), {})] for op in ("FFT", "IFFT", "FFT2D", "IFFT2D", "FFT3D", "IFFT3D", "BatchFFT", "BatchIFFT")},
    **{op: [((C, at([3, 6][-n:])), {})] for n, op in ((1, "IRFFT"), (2, "IRFFT2D"))},
    "IRFFT3D": [((C, at([2, 3, 6])), {})],
    **{op: [((C, at([2, 3, 4][-n:])), {}), (((0, 3, 4), at([0, 3, 4][-n:])), {})] for n, op in ((1, "RFFT"), (2, "RFFT2D"), (3, "RFFT3D"))},
    **{op: [((C, at([4, 2]), at([2, 0])), {})] for op in ("FFTND", "IFFTND", "RFFTND")},
    "IRFFTND": [((C, at([3, 2]), at([1, 0])), {})],
    # images, quantisation
    **{op: [((IMAGE, N), {}), (((0, 2, 2, 3), N), {})] for op in ("AdjustContrastv2", "AdjustHue", "AdjustSaturation")},
    **{op: [((IMAGE,), {}), (((0, 3),), {})] for op in ("HSVToRGB", "RGBToHSV")},
    **{op: [((IMAGE, at([3, 8])), {}), ((IMAGE, at([3, 8])), _RESIZE), ((IMAGE, at([3, 8])), {"align_corners": True})]
       for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeNearestNeighborGrad")},
    "ResizeBicubic": [((IMAGE, at([3, 8])), {}), ((IMAGE, at([7, 8])), _RESIZE), ((IMAGE, at([1, 8])), {"align_corners": True})],
    "ResizeBicubicGrad": [(((2, 3, 8, 3), IMAGE), {}), (((2, 3, 8, 3), IMAGE), _RESIZE)],
    "ResizeArea": [((IMAGE, at([3, 8])), {}), ((IMAGE, at([3, 4])), {"align_corners": True})],
    "ResizeBilinearGrad": [(((2, 3, 8, 3), IMAGE), {}), (((2, 3, 8, 3), IMAGE), _RESIZE)],
    "CropAndResize": [((IMAGE, at([[0, 0, 1, 1], [0.2, 0.1, 1.5, 0.3]]), at([1, 0]), at([2, 3])), {}), ((IMAGE, at([[0, 0, 1, 1]]), at([1]), at([1, 3])), {"method": "nearest"})],
    "NonMaxSuppression": [(_NMS, {})],
    "NonMaxSuppressionV2": [((*_NMS, N), {})],
    "NonMaxSuppressionV3": [((*_NMS, N, N), {})],
    "NonMaxSuppressionV4": [((*_NMS, N, N), {"pad_to_max_output_size": True})],
    "NonMaxSuppressionV5": [((*_NMS, N, N, N), {"pad_to_max_output_size": True})],
    "CombinedNonMaxSuppression": [(((2, 5, 3, 4), (2, 5, 3), at(2), at(4), at(0.5), at(0.1)), {}), (((2, 5, 1, 4), (2, 5, 3), at(1), at(9), at(0.5), at(0.1)), {"pad_per_class": True})],
    "FakeQuantWithMinMaxVars": [((M, at(-1), at(2)), {}), (((0, 2), at(0), at(0)), {})],
    "FakeQuantWithMinMaxVarsGradient": [((M, M, at(-1), at(2)), {})],
    "FakeQuantWithMinMaxVarsPerChannel": [((M, at([-1, 0, 0]), at([2, 1, 0])), {})],
    "FakeQuantWithMinMaxVarsPerChannelGradient": [((M, M, at([-1, 0, 0]), at([2, 1, 0])), {})],
    **{op: [((M, at(-1), at(2)), {"range_given": True}), ((M, at(0), at(0)), {"range_given": False, "signed_input": False})]
       for op in ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV4")},
    "QuantizeAndDequantizeV3": [((M, at(-1), at(2), at(5)), {"narrow_range": True})],
    "Dequantize": [((M, at(-1), at(2)), {"mode": mode}) for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED")],
    "QuantizeAndDequantize": [((M,), {"range_given": True, "input_min": -1.0, "input_max": 2.0}), ((M,), {})],
    "QuantizeV2": [((M, at(-1), at(2)), {"mode": mode}) for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED")],
    "QuantizedMatMul": [(((2, 3), (3, 4), at(-1), at(2), at(0), at(1)), {}), (((0, 3), (3, 4), at(-1), at(2), at(0), at(1)), {})],
    "QuantizedConv2D": [((IMAGE, (3, 2, 3, 4), at(-1), at(2), at(0), at(1)), _CONV)],
    "Requantize": [((M, at(-3), at(4), at(-1), at(2)), {})],
    # strings
    "AsString": [((M,), {}), ((N,), {}), (((0, 2),), {})],
    "RegexReplace": [((M, at(b"w(.)"), at(b"\\1")), {}), (((0, 2), at(b"w"), at(b"")), {"replace_global": False})],
    "StaticRegexFullMatch": [((M,), {"pattern": "w[0-2]"}), ((N,), {"pattern": ""})],
    "ReduceJoin": [((C, at([2, 0])), {}), ((C, at([1])), {"keep_dims": True}), (((0, 2), at([0])), {})],
    "StringFormat": [(([M, N],), {"template": "%s and %s"})],
    "StringJoin": [(([M, N, M],), {"separator": " "}), (([(0,), N],), {})],
    # random numbers of a seed
    **{op: [((at([2, 3]), at([5, 7])), {}), ((at([0]), at([5, 7])), {})]
       for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal", "StatelessRandomUniformFullInt")},
    **{op: [((at([2, 3]), at([5]), at([1, 2]), at(1)), {})]
       for op in ("StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2", "StatelessRandomUniformFullIntV2")},
    "StatelessRandomUniformInt": [((at([2, 3]), at([5, 7]), at(-2), at(9)), {})],
    "StatelessRandomUniformIntV2": [((at([2, 3]), at([5]), at([1, 2]), at(1), at(2), at(9)), {})],
    "StatelessRandomGammaV2": [((at([5, 2, 3]), at([5, 7]), M), {}), ((at([0]), at([5, 7]), N), {})],
    "StatelessRandomGammaV3": [((at([5, 2, 3]), at([5]), at([1, 2]), at(1), M), {})],
    "StatelessRandomBinomial": [((at([5, 2, 3]), at([5, 7]), at([[3], [20]]), at([0, 1, 1])), {})],
    "StatelessParameterizedTruncatedNormal": [((at([5, 2]), at([5, 7]), at([0, 1]), N, at(-1), at(2)), {})],
    "StatelessMultinomial": [((M, at(4), at([5, 7])), {})],
    "StatelessRandomGetKeyCounter": [((at([5, 7]),), {})],
    "StatelessRandomGetKeyCounterAlg": [((at([5, 7]),), {})],
}  # fmt: skip

# Ops whose results may differ between types, by other random numbers or by rounding before a decision.
NOT_COMPARED = {
    "ApproxTopK", "Qr", "SelfAdjointEigV2", "SelfAdjointEig", "Svd", "NextAfter", "Bitcast", "TopK", "TopKV2", "Unique", "UniqueV2",
    "UniqueWithCounts", "ListDiff", "Equal", "NotEqual", "ApproximateEqual", "Bucketize", "StatelessMultinomial",
    "QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4", "Cast", "Lu", "SegmentMaxV2", "SegmentMinV2", "UnsortedSegmentMax", "UnsortedSegmentMin",
}  # fmt: skip


def draw(sizes: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return random numbers in the domain of every op, which every type represents exactly."""
    if dtype == np.bool_:
        return rng.random(sizes) < 0.5
    if dtype.hasobject:
        words = np.empty(sizes, object)
        words.reshape(-1)[:] = [b"w%d" % k for k in rng.integers(0, 5, words.size)]
        return words
    if dtype.kind in "iu":
        return rng.integers(1, 5, sizes).astype(dtype)
    numbers = (np.floor(rng.random(sizes) * 60) + 2) / 64
    return (numbers + 1j * numbers[::-1] if dtype.kind == "c" and numbers.ndim else numbers).astype(dtype)
