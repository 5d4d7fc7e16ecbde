"""Making arrays, asking for their shapes, diagonals."""

from cyxla.core.framework.op import op

op("Bitcast", "input: T -> output: type",
    "T: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, "
    "complex128, qint8, quint8, qint16, quint16, qint32}",
    "type: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, "
    "complex64, complex128, qint8, quint8, qint16, quint16, qint32}", shape=None,
)  # fmt: skip
op("BroadcastArgs", "s0: T, s1: T -> r0: T", "T: {int32, int64} = DT_INT32", shape=None)
op("BroadcastGradientArgs", "s0: T, s1: T -> r0: T, r1: T", "T: {int32, int64} = DT_INT32", shape=None)
op("BroadcastTo", "input: T, shape: Tidx -> output: T", "T: type", "Tidx: {int32, int64} = DT_INT32", shape=None)
op("Const", "-> output: dtype", "value: tensor", "dtype: type", shape=None)
op("Copy", "input: T -> output: T", "T: type", "tensor_name: string = ''", "debug_ops_spec: list(string) = []",
    allows_uninitialized_input=True, shape=None,
)  # fmt: skip
op("DeepCopy", "x: T -> y: T", "T: type", stateful=True, shape=None)
op("EnsureShape", "input: T -> output: T", "shape: shape", "T: type", shape=None)
op("ExpandDims", "input: T, dim: Tdim -> output: T", "T: type", "Tdim: {int32, int64} = DT_INT32", shape=None)
op("Fill", "dims: index_type, value: T -> output: T", "T: type", "index_type: {int32, int64} = DT_INT32", shape=None)
op("GuaranteeConst", "input: T -> output: T", "T: type", stateful=True, shape=None)
op("Identity", "input: T -> output: T", "T: type", shape=None)
op("IdentityN", "input: T -> output: T", "T: list(type)", shape=None)
op("ImmutableConst", "-> tensor: dtype", "dtype: type", "shape: shape", "memory_region_name: string", shape=None)
op("InplaceAdd", "x: T, i: int32, v: T -> y: T", "T: type", shape=None)
op("InplaceSub", "x: T, i: int32, v: T -> y: T", "T: type", shape=None)
op("InplaceUpdate", "x: T, i: int32, v: T -> y: T", "T: type", shape=None)
op("InvertPermutation", "x: T -> y: T", "T: {int32, int64} = DT_INT32", shape=None)
op("LinSpace", "start: T, stop: T, num: Tidx -> output: T", "T: {bfloat16, half, float, double}",
    "Tidx: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("ListDiff", "x: T, y: T -> out: T, idx: out_idx", "T: type", "out_idx: {int32, int64} = DT_INT32", shape=None)
op("OneHot", "indices: TI, depth: int32, on_value: T, off_value: T -> output: T", "axis: int = -1", "T: type",
    "TI: {uint8, int8, int32, int64} = DT_INT64", shape=None,
)  # fmt: skip
op("OnesLike", "x: T -> y: T",
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, "
    "complex128, bool}", shape=None,
)  # fmt: skip
op("ParallelConcat", "values: N * T -> output: T", "N: int", "T: type", "shape: shape", shape=None)
op("Placeholder", "-> output: dtype", "dtype: type", "shape: shape = { unknown_rank: true }", shape=None)
op("PlaceholderV2", "-> output: dtype", "dtype: type", "shape: shape", deprecated=(23, "Use Placeholder."), shape=None)
op("PlaceholderWithDefault", "input: dtype -> output: dtype", "dtype: type", "shape: shape", shape=None)
op("PreventGradient", "input: T -> output: T", "T: type", "message: string = ''", shape=None)
op("Rank", "input: T -> output: int32", "T: type", shape=None)
op("Reshape", "tensor: T, shape: Tshape -> output: T", "T: type", "Tshape: {int32, int64} = DT_INT32", shape=None)
op("Shape", "input: T -> output: out_type", "T: type", "out_type: {int32, int64} = DT_INT32", shape=None)
op("ShapeN", "input: N * T -> output: N * out_type", "N: int", "T: type", "out_type: {int32, int64} = DT_INT32",
    shape=None,
)  # fmt: skip
op("Size", "input: T -> output: out_type", "T: type", "out_type: {int32, int64} = DT_INT32", shape=None)
op("Snapshot", "input: T -> output: T", "T: type", shape=None)
op("Squeeze", "input: T -> output: T", "T: type", "squeeze_dims: list(int) >= 0 = []", shape=None)
op("StopGradient", "input: T -> output: T", "T: type", shape=None)
op("Unique", "x: T -> y: T, idx: out_idx", "T: type", "out_idx: {int32, int64} = DT_INT32", shape=None)
op("UniqueV2", "x: T, axis: Taxis -> y: T, idx: out_idx", "T: type", "Taxis: {int32, int64} = DT_INT64",
    "out_idx: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("UniqueWithCounts", "x: T -> y: T, idx: out_idx, count: out_idx", "T: type", "out_idx: {int32, int64} = DT_INT32",
    shape=None,
)  # fmt: skip
op("Where", "input: T -> index: int64", "T: {numbertype, bool} = DT_BOOL", shape=None)
op("ZerosLike", "x: T -> y: T", "T: type", shape=None)
op("Empty", "shape: int32 -> output: dtype", "dtype: type", "init: bool = false", stateful=True, shape=None)
op("Diag", "diagonal: T -> output: T", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    shape=None,
)  # fmt: skip
op("DiagPart", "input: T -> diagonal: T", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    shape=None,
)  # fmt: skip
op("BatchMatrixBandPart", "input: T, num_lower: int64, num_upper: int64 -> band: T", "T: type",
    deprecated=(14, "Use MatrixBandPart."), shape=None,
)  # fmt: skip
op("BatchMatrixDiag", "diagonal: T -> output: T", "T: type", deprecated=(14, "Use MatrixDiag."), shape=None)
op("MatrixBandPart", "input: T, num_lower: Tindex, num_upper: Tindex -> band: T", "T: type",
    "Tindex: {int32, int64} = DT_INT64", shape=None,
)  # fmt: skip
op("MatrixDiag", "diagonal: T -> output: T", "T: type", shape=None)
op("MatrixDiagPart", "input: T -> diagonal: T", "T: type", shape=None)
op("MatrixDiagPartV2", "input: T, k: int32, padding_value: T -> diagonal: T", "T: type", shape=None)
op("MatrixDiagPartV3", "input: T, k: int32, padding_value: T -> diagonal: T", "T: type",
    "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'", shape=None,
)  # fmt: skip
op("MatrixDiagV2", "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T -> output: T", "T: type",
    shape=None,
)  # fmt: skip
op("MatrixDiagV3", "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T -> output: T", "T: type",
    "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'", shape=None,
)  # fmt: skip
op("MatrixSetDiag", "input: T, diagonal: T -> output: T", "T: type", shape=None)
op("MatrixSetDiagV2", "input: T, diagonal: T, k: int32 -> output: T", "T: type", shape=None)
op("MatrixSetDiagV3", "input: T, diagonal: T, k: int32 -> output: T", "T: type",
    "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'", shape=None,
)  # fmt: skip
op("UpperBound", "sorted_inputs: T, values: T -> output: out_type", "T: type", "out_type: {int32, int64} = DT_INT32",
    shape=None,
)  # fmt: skip
op("LowerBound", "sorted_inputs: T, values: T -> output: out_type", "T: type", "out_type: {int32, int64} = DT_INT32",
    shape=None,
)  # fmt: skip
op("Select", "condition: bool, t: T, e: T -> output: T", "T: type", shape=None)
op("SelectV2", "condition: bool, t: T, e: T -> output: T", "T: type", shape=None)
op("ToBool", "input: T -> output: bool", "T: type", shape=None)
