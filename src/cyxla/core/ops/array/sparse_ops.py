"""Sparse tensors."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import unknown_shape
from cyxla.core.framework.shape_inference import InferenceContext


def _fill_rows_shape(c: InferenceContext) -> None:
    """Set the elements, a flag per row, and the new index of each element."""
    indices, values = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 1)
    dense = c.with_rank(c.input(2), 1)
    c.with_rank(c.input(3), 0)
    count = c.merge_dim(indices[0], values[0])
    rank = c.merge_dim(indices[1], dense[0])
    shape = c.make_shape_from_shape_tensor(2)
    c.set_output(0, (None, rank))
    c.set_output(1, (None,))
    c.set_output(2, (shape[0] if shape.rank else None,))
    c.set_output(3, (count,))


def _reshape_shape(c: InferenceContext) -> None:
    indices, old, new = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 1), c.with_rank(c.input(2), 1)
    c.merge_dim(indices[1], old[0])
    c.set_output(0, (indices[0], new[0]))
    c.set_output(1, new)


def _product_shape(c: InferenceContext) -> None:
    """Set the product of a sparse and a dense matrix, or their adjoints."""
    indices, values = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 1)
    c.merge_dim(indices[0], values[0])
    c.merge_dim(indices[1], 2)
    a, b = c.with_rank(c.make_shape_from_shape_tensor(2), 2), c.with_rank(c.input(3), 2)
    rows, inner = (a[1], a[0]) if c.attr("adjoint_a") else (a[0], a[1])
    inner_b, columns = (b[1], b[0]) if c.attr("adjoint_b") else (b[0], b[1])
    c.merge_dim(inner, inner_b)
    c.set_output(0, (rows, columns))


def _to_dense_shape(c: InferenceContext) -> None:
    c.set_output(0, c.make_shape_from_shape_tensor(1))


def _edit_distance_shape(c: InferenceContext) -> None:
    """Set one distance per sequence, along the last dimension."""
    rank = c.merge_dim(c.with_rank(c.input(2), 1)[0], c.with_rank(c.input(5), 1)[0])
    if rank:
        c.set_output(0, c.unknown_shape_of_rank(rank - 1))


op("SparseFillEmptyRows",
    "indices: int64, values: T, dense_shape: int64, default_value: T -> output_indices: int64, output_values: "
    "T, empty_row_indicator: bool, reverse_index_map: int64", "T: type", shape=_fill_rows_shape,
    doc="Add a default element to each empty row of a sparse tensor.",
)  # fmt: skip
op("SparseReduceSum", "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32 -> output: T",
    "keep_dims: bool = false", "T: numbertype", shape=unknown_shape,
    doc="Sum a sparse tensor along some axes into a dense one.",
)  # fmt: skip
op("SparseReshape",
    "input_indices: int64, input_shape: int64, new_shape: int64 -> output_indices: int64, output_shape: int64",
    shape=_reshape_shape, doc="Reshape a sparse tensor.",
)  # fmt: skip
op("SparseTensorDenseMatMul", "a_indices: Tindices, a_values: T, a_shape: int64, b: T -> product: T", "T: type",
    "Tindices: {int32, int64} = DT_INT64", "adjoint_a: bool = false", "adjoint_b: bool = false", shape=_product_shape,
    doc="Multiply a sparse by a dense matrix.",
)  # fmt: skip
op("SparseToDense", "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T -> dense: T",
    "validate_indices: bool = true", "T: type", "Tindices: {int32, int64}", shape=_to_dense_shape,
    doc="Scatter values into an array filled with a default.",
)  # fmt: skip
op("EditDistance", "hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, truth_indices: int64, "
    "truth_values: T, truth_shape: int64 -> output: float", "normalize: bool = true", "T: type",
    shape=_edit_distance_shape, doc="Compute the edit distance of sequences.",
)  # fmt: skip
