"""Reductions over segments."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_inference import InferenceContext


def _sorted_shape(c: InferenceContext) -> None:
    """Set an unknown number of rows, which depends on the last id."""
    data, ids = c.with_rank_at_least(c.input(0), 1), c.with_rank(c.input(1), 1)
    c.merge_dim(data[0], ids[0])
    c.set_output(0, c.concatenate(c.vector(None), c.sub_shape(data, 1)))


def _sorted_count_shape(c: InferenceContext) -> None:
    """Set the given number of rows."""
    data = c.with_rank_at_least(c.input(0), 1)
    c.merge_dim(data[0], c.with_rank(c.input(1), 1)[0])
    c.set_output(0, c.concatenate(c.vector(c.make_dim_for_scalar_input(2)), c.sub_shape(data, 1)))


def _unsorted_shape(c: InferenceContext) -> None:
    """Replace the dimensions covered by the ids by the given number of segments."""
    data, ids = c.input(0), c.input(1)
    if ids.rank is None:
        return
    data, ids = c.merge_prefix(data, ids)
    count = c.make_dim_for_scalar_input(2)
    c.set_output(0, c.concatenate(c.vector(count), c.sub_shape(data, ids.rank or 0)))


def _sparse_shape(c: InferenceContext) -> None:
    """Set an unknown number of rows after selection by indices."""
    data = c.with_rank_at_least(c.input(0), 1)
    c.merge(c.with_rank(c.input(1), 1), c.with_rank(c.input(2), 1))
    c.set_output(0, c.concatenate(c.vector(None), c.sub_shape(data, 1)))


op("SegmentMax", "data: T, segment_ids: Tindices -> output: T", "T: realnumbertype", "Tindices: {int32, int64}",
    shape=_sorted_shape, doc="Compute the maximum of the rows of each segment.",
)  # fmt: skip
op("SegmentMaxV2", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: realnumbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_sorted_count_shape,
    doc="Compute the maximum of the rows of each of a given number of segments.",
)  # fmt: skip
op("SegmentMean", "data: T, segment_ids: Tindices -> output: T", "T: numbertype", "Tindices: {int32, int64}",
    shape=_sorted_shape, doc="Compute the mean of the rows of each segment.",
)  # fmt: skip
op("SegmentMin", "data: T, segment_ids: Tindices -> output: T", "T: realnumbertype", "Tindices: {int32, int64}",
    shape=_sorted_shape, doc="Compute the minimum of the rows of each segment.",
)  # fmt: skip
op("SegmentMinV2", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: realnumbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_sorted_count_shape,
    doc="Compute the minimum of the rows of each of a given number of segments.",
)  # fmt: skip
op("SegmentProd", "data: T, segment_ids: Tindices -> output: T", "T: numbertype", "Tindices: {int32, int64}",
    shape=_sorted_shape, doc="Compute the product of the rows of each segment.",
)  # fmt: skip
op("SegmentProdV2", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: numbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_sorted_count_shape,
    doc="Compute the product of the rows of each of a given number of segments.",
)  # fmt: skip
op("SegmentSum", "data: T, segment_ids: Tindices -> output: T", "T: numbertype", "Tindices: {int32, int64}",
    shape=_sorted_shape, doc="Compute the sum of the rows of each segment.",
)  # fmt: skip
op("SegmentSumV2", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: numbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_sorted_count_shape,
    doc="Compute the sum of the rows of each of a given number of segments.",
)  # fmt: skip
op("SparseSegmentMean", "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T",
    "T: {bfloat16, half, float, double}", "Tidx: {int32, int64} = DT_INT32", "Tsegmentids: {int32, int64} = DT_INT32",
    "sparse_gradient: bool = false", shape=_sparse_shape, doc="Compute the mean of selected rows of each segment.",
)  # fmt: skip
op("SparseSegmentSqrtN", "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T",
    "T: {bfloat16, half, float, double}", "Tidx: {int32, int64} = DT_INT32", "Tsegmentids: {int32, int64} = DT_INT32",
    "sparse_gradient: bool = false", shape=_sparse_shape,
    doc="Compute the sum of selected rows of each segment, divided by the root of their number.",
)  # fmt: skip
op("SparseSegmentSum", "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T", "T: realnumbertype",
    "Tidx: {int32, int64} = DT_INT32", "Tsegmentids: {int32, int64} = DT_INT32", "sparse_gradient: bool = false",
    shape=_sparse_shape, doc="Compute the sum of selected rows of each segment.",
)  # fmt: skip
op("UnsortedSegmentMax", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: realnumbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_unsorted_shape,
    doc="Compute the maximum of the elements of each segment.",
)  # fmt: skip
op("UnsortedSegmentMin", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: realnumbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_unsorted_shape,
    doc="Compute the minimum of the elements of each segment.",
)  # fmt: skip
op("UnsortedSegmentProd", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: numbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_unsorted_shape,
    doc="Compute the product of the elements of each segment.",
)  # fmt: skip
op("UnsortedSegmentSum", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: numbertype",
    "Tindices: {int16, int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_unsorted_shape,
    doc="Compute the sum of the elements of each segment.",
)  # fmt: skip
