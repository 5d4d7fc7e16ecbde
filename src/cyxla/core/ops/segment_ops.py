"""Reductions over segments."""

from cyxla.core.framework.op import op

op("SegmentMax", "data: T, segment_ids: Tindices -> output: T", "T: realnumbertype", "Tindices: {int32, int64}",
    shape=None,
)  # fmt: skip
op("SegmentMaxV2", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: realnumbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("SegmentMean", "data: T, segment_ids: Tindices -> output: T", "T: numbertype", "Tindices: {int32, int64}",
    shape=None,
)  # fmt: skip
op("SegmentMin", "data: T, segment_ids: Tindices -> output: T", "T: realnumbertype", "Tindices: {int32, int64}",
    shape=None,
)  # fmt: skip
op("SegmentMinV2", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: realnumbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("SegmentProd", "data: T, segment_ids: Tindices -> output: T", "T: numbertype", "Tindices: {int32, int64}",
    shape=None,
)  # fmt: skip
op("SegmentProdV2", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: numbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("SegmentSum", "data: T, segment_ids: Tindices -> output: T", "T: numbertype", "Tindices: {int32, int64}", shape=None)
op("SegmentSumV2", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: numbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("SparseSegmentMean", "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T",
    "T: {bfloat16, half, float, double}", "Tidx: {int32, int64} = DT_INT32", "Tsegmentids: {int32, int64} = DT_INT32",
    "sparse_gradient: bool = false", shape=None,
)  # fmt: skip
op("SparseSegmentSqrtN", "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T",
    "T: {bfloat16, half, float, double}", "Tidx: {int32, int64} = DT_INT32", "Tsegmentids: {int32, int64} = DT_INT32",
    "sparse_gradient: bool = false", shape=None,
)  # fmt: skip
op("SparseSegmentSum", "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T", "T: realnumbertype",
    "Tidx: {int32, int64} = DT_INT32", "Tsegmentids: {int32, int64} = DT_INT32", "sparse_gradient: bool = false",
    shape=None,
)  # fmt: skip
op("UnsortedSegmentMax", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: realnumbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("UnsortedSegmentMin", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: realnumbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("UnsortedSegmentProd", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: numbertype",
    "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("UnsortedSegmentSum", "data: T, segment_ids: Tindices, num_segments: Tnumsegments -> output: T", "T: numbertype",
    "Tindices: {int16, int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
