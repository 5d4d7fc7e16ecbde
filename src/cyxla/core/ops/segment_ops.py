"""Reductions over segments."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_inference import InferenceContext


def _sorted_shape(c: InferenceContext) -> None:
    """Rows are summed up by their ids; the last id tells how many there are."""
    data, ids = c.with_rank_at_least(c.input(0), 1), c.with_rank(c.input(1), 1)
    c.merge_dim(data[0], ids[0])
    c.set_output(0, c.concatenate(c.vector(None), c.sub_shape(data, 1)))


def _sorted_count_shape(c: InferenceContext) -> None:
    """As many rows as are asked for."""
    data = c.with_rank_at_least(c.input(0), 1)
    c.merge_dim(data[0], c.with_rank(c.input(1), 1)[0])
    c.set_output(0, c.concatenate(c.vector(c.make_dim_for_scalar_input(2)), c.sub_shape(data, 1)))


def _unsorted_shape(c: InferenceContext) -> None:
    """The ids cover the first dimensions of the data."""
    data, ids = c.input(0), c.input(1)
    if ids.rank is None:
        return
    data, ids = c.merge_prefix(data, ids)
    count = c.make_dim_for_scalar_input(2)
    c.set_output(0, c.concatenate(c.vector(count), c.sub_shape(data, ids.rank or 0)))


def _sparse_shape(c: InferenceContext) -> None:
    """Rows are picked by indices before they are summed up."""
    data = c.with_rank_at_least(c.input(0), 1)
    c.merge(c.with_rank(c.input(1), 1), c.with_rank(c.input(2), 1))
    c.set_output(0, c.concatenate(c.vector(None), c.sub_shape(data, 1)))


op("SegmentMax", "data: T, segment_ids: Tindices -> output: T", "T: realnumbertype", "Tindices: {int32, int64}",
    shape=_sorted_shape, doc="The greatest of the rows of each segment.",
)  # fmt: skip
op("SegmentMaxV2", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: realnumbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_sorted_count_shape,
    doc="The greatest of the rows of each segment; how many there are is given.",
)  # fmt: skip
op("SegmentMean", "data: T, segment_ids: Tindices -> output: T", "T: numbertype", "Tindices: {int32, int64}",
    shape=_sorted_shape, doc="The mean of the rows of each segment.",
)  # fmt: skip
op("SegmentMin", "data: T, segment_ids: Tindices -> output: T", "T: realnumbertype", "Tindices: {int32, int64}",
    shape=_sorted_shape, doc="The least of the rows of each segment.",
)  # fmt: skip
op("SegmentMinV2", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: realnumbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_sorted_count_shape,
    doc="The least of the rows of each segment; how many there are is given.",
)  # fmt: skip
op("SegmentProd", "data: T, segment_ids: Tindices -> output: T", "T: numbertype", "Tindices: {int32, int64}",
    shape=_sorted_shape, doc="The product of the rows of each segment.",
)  # fmt: skip
op("SegmentProdV2", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: numbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_sorted_count_shape,
    doc="The product of the rows of each segment; how many there are is given.",
)  # fmt: skip
op("SegmentSum", "data: T, segment_ids: Tindices -> output: T", "T: numbertype", "Tindices: {int32, int64}",
    shape=_sorted_shape, doc="The sum of the rows of each segment.",
)  # fmt: skip
op("SegmentSumV2", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: numbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_sorted_count_shape,
    doc="The sum of the rows of each segment; how many there are is given.",
)  # fmt: skip
op("SparseSegmentMean", "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T",
    "T: {bfloat16, half, float, double}", "Tidx: {int32, int64} = DT_INT32", "Tsegmentids: {int32, int64} = DT_INT32",
    "sparse_gradient: bool = false", shape=_sparse_shape, doc="The mean of picked rows of each segment.",
)  # fmt: skip
op("SparseSegmentSqrtN", "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T",
    "T: {bfloat16, half, float, double}", "Tidx: {int32, int64} = DT_INT32", "Tsegmentids: {int32, int64} = DT_INT32",
    "sparse_gradient: bool = false", shape=_sparse_shape,
    doc="The sum of picked rows of each segment, divided by the root of their number.",
)  # fmt: skip
op("SparseSegmentSum", "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T", "T: realnumbertype",
    "Tidx: {int32, int64} = DT_INT32", "Tsegmentids: {int32, int64} = DT_INT32", "sparse_gradient: bool = false",
    shape=_sparse_shape, doc="The sum of picked rows of each segment.",
)  # fmt: skip
op("UnsortedSegmentMax", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: realnumbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_unsorted_shape,
    doc="The greatest of the elements with each number.",
)  # fmt: skip
op("UnsortedSegmentMin", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: realnumbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_unsorted_shape,
    doc="The least of the elements with each number.",
)  # fmt: skip
op("UnsortedSegmentProd", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: numbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_unsorted_shape,
    doc="The product of the elements with each number.",
)  # fmt: skip
op("UnsortedSegmentSum", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: numbertype",
    "Tindices: {int16, int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=_unsorted_shape,
    doc="The sum of the elements with each number.",
)  # fmt: skip
