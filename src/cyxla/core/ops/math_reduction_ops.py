"""Reductions and scans."""

from cyxla.core.framework.op import op

op("All", "input: bool, reduction_indices: Tidx -> output: bool", "keep_dims: bool = false",
    "Tidx: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("Any", "input: bool, reduction_indices: Tidx -> output: bool", "keep_dims: bool = false",
    "Tidx: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("ArgMax", "input: T, dimension: Tidx -> output: output_type", "T: {realnumbertype, quantizedtype, bool}",
    "Tidx: {int16, int32, int64} = DT_INT32", "output_type: {int16, uint16, int32, int64} = DT_INT64", shape=None,
)  # fmt: skip
op("ArgMin", "input: T, dimension: Tidx -> output: output_type", "T: {realnumbertype, quantizedtype, bool}",
    "Tidx: {int32, int64} = DT_INT32", "output_type: {int32, int64} = DT_INT64", shape=None,
)  # fmt: skip
op("Cumprod", "x: T, axis: Tidx -> out: T", "exclusive: bool = false", "reverse: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("Cumsum", "x: T, axis: Tidx -> out: T", "exclusive: bool = false", "reverse: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("CumulativeLogsumexp", "x: T, axis: Tidx -> out: T", "exclusive: bool = false", "reverse: bool = false",
    "T: {bfloat16, half, float, double}", "Tidx: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("EuclideanNorm", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("Max", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false",
    "T: {realnumbertype, quantizedtype}", "Tidx: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("Mean", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("Min", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false",
    "T: {realnumbertype, quantizedtype}", "Tidx: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("Prod", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("Sum", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
