"""Matrix products, sums, casts, ranges and counts."""

import math

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import (
    batch_matmul_shape,
    batch_matmul_v2_shape,
    elementwise_shape,
    matmul_shape,
    merge_all_inputs_shape,
    scalar_shape,
    unchanged_shape,
)
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import Dim
from cyxla.errors import ShapeError


def _sum_shape(c: InferenceContext) -> None:
    """Merge all inputs; the sum keeps their handle."""
    merge_all_inputs_shape(c)
    handle = c.input_handle(0)
    if handle is not None:
        c.set_output_handle(0, handle)


def _bins(c: InferenceContext, i: int) -> Dim:
    return c.make_dim_for_scalar_input(i)


def _bincount_shape(c: InferenceContext) -> None:
    c.set_output(0, (_bins(c, 1),))


def _dense_bincount_shape(c: InferenceContext) -> None:
    """Set one row of bins per row."""
    x, bins = c.with_rank_at_most(c.input(0), 2), _bins(c, 1)
    if x.rank == 1:
        c.set_output(0, (bins,))
    elif x.rank == 2:
        c.set_output(0, (x[0], bins))


def _sparse_bincount_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 2)
    c.with_rank(c.input(1), 1)
    bins, dense = _bins(c, 3), c.make_shape_from_shape_tensor(2)
    if dense.rank is not None and dense.rank in (1, 2):
        c.set_output(0, (*dense[:-1], bins))


def _ragged_bincount_shape(c: InferenceContext) -> None:
    splits = c.with_rank(c.input(0), 1)
    c.set_output(0, (c.subtract(splits[0], 1), _bins(c, 2)))


def _cross_shape(c: InferenceContext) -> None:
    """Check that the last dimension has size 3."""
    shape = c.merge(c.with_rank_at_least(c.input(0), 1), c.with_rank_at_least(c.input(1), 1))
    c.set_output(0, c.replace_dim(shape, -1, c.with_value(shape[-1], 3)) if shape.dims is not None else shape)


def _histogram_shape(c: InferenceContext) -> None:
    limits = c.with_rank(c.input(1), 1)
    c.with_value(limits[0], 2)
    bins = c.make_dim_for_scalar_input(2)
    if bins == 0:
        raise ShapeError("HistogramFixedWidth: nbins must be positive, but is 0")
    c.set_output(0, (bins,))


def _nth_element_shape(c: InferenceContext) -> None:
    """Remove the last dimension, which must be larger than n."""
    x, n = c.with_rank_at_least(c.input(0), 1), c.make_dim_for_scalar_input(1)
    last = x[-1]
    if n is not None and last is not None and last <= n:
        raise ShapeError(f"NthElement: the last dimension is {last}, which has no element {n}")
    c.set_output(0, c.sub_shape(x, 0, -1))


def _range_shape(c: InferenceContext) -> None:
    for i in range(3):
        c.with_rank(c.input(i), 0)
    values = [c.input_tensor(i) for i in range(3)]
    if any(v is None for v in values):
        c.set_output(0, (None,))
        return
    start, limit, delta = (v.item() for v in values if v is not None)
    if delta == 0:
        raise ShapeError("Range: delta must not be 0")
    if (limit - start) * delta < 0:
        raise ShapeError(f"Range: {limit} cannot be reached from {start} in steps of {delta}")
    exact = isinstance(delta, int)
    c.set_output(0, (-(-(limit - start) // delta) if exact else math.ceil(abs((limit - start) / delta)),))


def _stochastic_cast_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(1), 1)
    c.with_rank(c.input(2), 1)
    c.with_rank(c.input(3), 0)
    unchanged_shape(c)


op("AccumulateNV2", "inputs: N * T -> sum: T", "N: int >= 1", "T: numbertype", "shape: shape", commutative=True,
    aggregate=True, shape=merge_all_inputs_shape, doc="Sum all inputs, of one shape that is given.",
)  # fmt: skip
op("AddN", "inputs: N * T -> sum: T", "N: int", "T: {numbertype, variant}", commutative=True, aggregate=True,
    shape=_sum_shape, doc="Sum all inputs.",
)  # fmt: skip
op("BatchMatMul", "x: T, y: T -> output: T", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    "adj_x: bool = false", "adj_y: bool = false", "grad_x: bool = false", "grad_y: bool = false",
    shape=batch_matmul_shape, doc="Multiply matrices of equal batches, optionally their adjoints.",
)  # fmt: skip
op("BatchMatMulV2", "x: T, y: T -> output: T",
    "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
    "adj_x: bool = false", "adj_y: bool = false", "grad_x: bool = false", "grad_y: bool = false",
    shape=batch_matmul_v2_shape, doc="Multiply matrices of broadcasting batches, optionally their adjoints.",
)  # fmt: skip
op("BatchMatMulV3", "x: Ta, y: Tb -> output: Tout",
    "Ta: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}",
    "Tb: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}",
    "Tout: {bfloat16, half, float, double, int16, int32, int64, complex64, complex128}", "adj_x: bool = false",
    "adj_y: bool = false", "grad_x: bool = false", "grad_y: bool = false", shape=batch_matmul_v2_shape,
    doc="Multiply matrices of broadcasting batches into a result of any type.",
)  # fmt: skip
op("Bincount", "arr: int32, size: int32, weights: T -> bins: T", "T: {int32, int64, float, double}",
    shape=_bincount_shape, doc="Count the occurrences of each number, or sum their weights.",
)  # fmt: skip
op("Bucketize", "input: T -> output: int32", "T: {int32, int64, float, double}", "boundaries: list(float)",
    shape=unchanged_shape, doc="Return the index of each element's interval between boundaries.",
)  # fmt: skip
op("Cast", "x: SrcT -> y: DstT", "SrcT: type", "DstT: type", "Truncate: bool = false", shape=elementwise_shape,
    doc="Convert to another type.",
)  # fmt: skip
op("ClipByValue", "t: T, clip_value_min: T, clip_value_max: T -> output: T", "T: numbertype", shape=unchanged_shape,
    doc="Clamp elements between two bounds.",
)  # fmt: skip
op("Cross", "a: T, b: T -> product: T", "T: realnumbertype", shape=_cross_shape,
    doc="Compute cross products of 3-vectors.",
)  # fmt: skip
op("DenseBincount", "input: Tidx, size: Tidx, weights: T -> output: T", "Tidx: {int32, int64}",
    "T: {int32, int64, float, double}", "binary_output: bool = false", shape=_dense_bincount_shape,
    doc="Count the occurrences of each number per row, or sum their weights.",
)  # fmt: skip
op("HistogramFixedWidth", "values: T, value_range: T, nbins: int32 -> out: dtype", "T: {int32, int64, float, double}",
    "dtype: {int32, int64} = DT_INT32", shape=_histogram_shape,
    doc="Count the values in bins of equal width.",
)  # fmt: skip
op("L2Loss", "t: T -> output: T", "T: {half, bfloat16, float, double}", shape=scalar_shape,
    doc="Compute half the sum of squares.",
)  # fmt: skip
op("MatMul", "a: T, b: T -> product: T", "transpose_a: bool = false", "transpose_b: bool = false",
    "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
    "grad_a: bool = false", "grad_b: bool = false", shape=matmul_shape,
    doc="Multiply two matrices.\n\nEach may be transposed first; the inner sizes must be equal.",
)  # fmt: skip
op("NthElement", "input: T, n: int32 -> values: T", "reverse: bool = false", "T: realnumbertype",
    shape=_nth_element_shape, doc="Return the n-th smallest element along the last dimension.",
)  # fmt: skip
op("RaggedBincount", "splits: int64, values: Tidx, size: Tidx, weights: T -> output: T", "Tidx: {int32, int64}",
    "T: {int32, int64, float, double}", "binary_output: bool = false", shape=_ragged_bincount_shape,
    doc="Count the occurrences of each number per row of a ragged array, or sum their weights.",
)  # fmt: skip
op("Range", "start: Tidx, limit: Tidx, delta: Tidx -> output: Tidx",
    "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = DT_INT32",
    shape=_range_shape, doc="Return numbers from start to limit, exclusive, with a step.",
)  # fmt: skip
op("SparseBincount", "indices: int64, values: Tidx, dense_shape: int64, size: Tidx, weights: T -> output: T",
    "Tidx: {int32, int64}", "T: {int32, int64, float, double}", "binary_output: bool = false",
    shape=_sparse_bincount_shape,
    doc="Count the occurrences of each number per row of a sparse array, or sum their weights.",
)  # fmt: skip
op("SparseMatMul", "a: Ta, b: Tb -> product: float", "transpose_a: bool = false", "transpose_b: bool = false",
    "a_is_sparse: bool = false", "b_is_sparse: bool = false", "Ta: {float, bfloat16} = DT_FLOAT",
    "Tb: {float, bfloat16} = DT_FLOAT", shape=matmul_shape, doc="Multiply two matrices that may be mostly zero.",
)  # fmt: skip
op("StochasticCastToInt", "input: Tin, key: uint64, counter: uint64, alg: int32 -> output: Tout",
    "Tin: {half, bfloat16, float, double}", "Tout: {int8, int16, int32}", shape=_stochastic_cast_shape,
    doc="Round to integers at random, with probabilities by distance.",
)  # fmt: skip
op("_FusedMatMul", "a: T, b: T, args: num_args * T -> product: T", "transpose_a: bool = false",
    "transpose_b: bool = false", "T: {bfloat16, half, float}", "num_args: int >= 0", "fused_ops: list(string) = []",
    "epsilon: float = 0.0001", "leakyrelu_alpha: float = 0.2", shape=matmul_shape,
    doc="Multiply matrices and apply element-wise ops to the result.",
)  # fmt: skip
op("_UnaryOpsComposition", "x: T -> y: T", "T: {float, half, double}", "op_names: list(string)", shape=unchanged_shape,
    doc="Apply several unary functions in sequence.",
)  # fmt: skip
