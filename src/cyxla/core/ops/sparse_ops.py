"""Sparse tensors."""

from cyxla.core.framework.op import op

op("SparseFillEmptyRows",
    "indices: int64, values: T, dense_shape: int64, default_value: T -> output_indices: int64, output_values: "
    "T, empty_row_indicator: bool, reverse_index_map: int64", "T: type", shape=None,
)  # fmt: skip
op("SparseReduceSum", "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> output: T",
    "keep_dims: bool = false", "T: numbertype", shape=None,
)  # fmt: skip
op("SparseReshape",
    "input_indices: int64, input_shape: int64, new_shape: int64 -> output_indices: int64, output_shape: int64",
    shape=None,
)  # fmt: skip
op("SparseTensorDenseMatMul", "a_indices: Tindices, a_values: T, a_shape: int64, b: T -> product: T", "T: type",
    "Tindices: {int32, int64} = DT_INT64", "adjoint_a: bool = false", "adjoint_b: bool = false", shape=None,
)  # fmt: skip
op("SparseToDense", "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T -> dense: T",
    "validate_indices: bool = true", "T: type", "Tindices: {int32, int64}", shape=None,
)  # fmt: skip
op("EditDistance", "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, truth_indices: int64, "
    "truth_values: T, truth_shape: int64 -> output: float", "normalize: bool = true", "T: type", shape=None,
)  # fmt: skip
