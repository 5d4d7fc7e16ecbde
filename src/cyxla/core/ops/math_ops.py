"""Products of matrices, sums of many, casts, ranges and counts."""

from cyxla.core.framework.op import op

op("AddN", "inputs: N * T -> sum: T", "N: int", "T: {numbertype, variant}", commutative=True, aggregate=True,
    shape=None,
)  # fmt: skip
op("BatchMatMul", "x: T, y: T -> output: T", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    "adj_x: bool = false", "adj_y: bool = false", "grad_x: bool = false", "grad_y: bool = false", shape=None,
)  # fmt: skip
op("BatchMatMulV2", "x: T, y: T -> output: T",
    "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, " "complex128}",
    "adj_x: bool = false", "adj_y: bool = false", "grad_x: bool = false", "grad_y: bool = false", shape=None,
)  # fmt: skip
op("BatchMatMulV3", "x: Ta, y: Tb -> output: Tout",
    "Ta: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}",
    "Tb: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}",
    "Tout: {bfloat16, half, float, double, int16, int32, int64, complex64, complex128}", "adj_x: bool = false",
    "adj_y: bool = false", "grad_x: bool = false", "grad_y: bool = false", shape=None,
)  # fmt: skip
op("Bincount", "arr: int32, size: int32, weights: T -> bins: T", "T: {int32, int64, float, double}", shape=None)
op("Bucketize", "input: T -> output: int32", "T: {int32, int64, float, double}", "boundaries: list(float)", shape=None)
op("Cast", "x: SrcT -> y: DstT", "SrcT: type", "DstT: type", "Truncate: bool = false", shape=None)
op("ClipByValue", "t: T, clip_value_min: T, clip_value_max: T -> output: T", "T: numbertype", shape=None)
op("Cross", "a: T, b: T -> product: T", "T: realnumbertype", shape=None)
op("DenseBincount", "input: Tidx, size: Tidx, weights: T -> output: T", "Tidx: {int32, int64}",
    "T: {int32, int64, float, double}", "binary_output: bool = false", shape=None,
)  # fmt: skip
op("HistogramFixedWidth", "values: T, value_range: T, nbins: int32 -> out: dtype", "T: {int32, int64, float, double}",
    "dtype: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("L2Loss", "t: T -> output: T", "T: {half, bfloat16, float, double}", shape=None)
op("MatMul", "a: T, b: T -> product: T", "transpose_a: bool = false", "transpose_b: bool = false",
    "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
    "grad_a: bool = false", "grad_b: bool = false", shape=None,
)  # fmt: skip
op("NthElement", "input: T, n: int32 -> values: T", "reverse: bool = false", "T: realnumbertype", shape=None)
op("RaggedBincount", "splits: int64, values: Tidx, size: Tidx, weights: T -> output: T", "Tidx: {int32, int64}",
    "T: {int32, int64, float, double}", "binary_output: bool = false", shape=None,
)  # fmt: skip
op("Range", "start: Tidx, limit: Tidx, delta: Tidx -> output: Tidx",
    "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = DT_INT32", shape=None,
)  # fmt: skip
op("SparseBincount", "indices: int64, values: Tidx, dense_shape: int64, size: Tidx, weights: T -> output: T",
    "Tidx: {int32, int64}", "T: {int32, int64, float, double}", "binary_output: bool = false", shape=None,
)  # fmt: skip
op("SparseMatMul", "a: Ta, b: Tb -> product: float", "transpose_a: bool = false", "transpose_b: bool = false",
    "a_is_sparse: bool = false", "b_is_sparse: bool = false", "Ta: {float, bfloat16} = DT_FLOAT",
    "Tb: {float, bfloat16} = DT_FLOAT", shape=None,
)  # fmt: skip
op("StochasticCastToInt", "input: Tin, key: uint64, counter: uint64, alg: int32 -> output: Tout",
    "Tin: {half, bfloat16, float, double}", "Tout: {int8, int16, int32}", shape=None,
)  # fmt: skip
op("_FusedMatMul", "a: T, b: T, args: num_args * T -> product: T", "transpose_a: bool = false",
    "transpose_b: bool = false", "T: {bfloat16, half, float}", "num_args: int >= 0", "fused_ops: list(string) = []",
    "epsilon: float = 0.0001", "leakyrelu_alpha: float = 0.2", shape=None,
)  # fmt: skip
op("_UnaryOpsComposition", "x: T -> y: T", "T: {float, half, double}", "op_names: list(string)", shape=None)
