"""Biases, best k, layouts."""

from cyxla.core.framework.op import op

op("ApproxTopK", "input: T -> values: T, indices: int32", "k: int >= 0", "reduction_dimension: int = -1",
    "recall_target: float = 0.95", "is_max_k: bool = true", "reduction_input_size_override: int = -1",
    "aggregate_to_topk: bool = true", "T: {half, bfloat16, float}", shape=None,
)  # fmt: skip
op("BiasAdd", "value: T, bias: T -> output: T", "T: numbertype", "data_format: {'NHWC', 'NCHW'} = 'NHWC'", shape=None)
op("BiasAddGrad", "out_backprop: T -> output: T", "T: numbertype", "data_format: {'NHWC', 'NCHW'} = 'NHWC'", shape=None)
op("BiasAddV1", "value: T, bias: T -> output: T", "T: numbertype", shape=None)
op("DataFormatDimMap", "x: T -> y: T", "T: {int32, int64} = DT_INT32", "src_format: string = 'NHWC'",
    "dst_format: string = 'NCHW'", shape=None,
)  # fmt: skip
op("DataFormatVecPermute", "x: T -> y: T", "T: {int32, int64} = DT_INT32", "src_format: string = 'NHWC'",
    "dst_format: string = 'NCHW'", shape=None,
)  # fmt: skip
op("InTopK", "predictions: float, targets: T -> precision: bool", "k: int", "T: {int32, int64} = DT_INT32", shape=None)
op("InTopKV2", "predictions: float, targets: T, k: T -> precision: bool", "T: {int32, int64} = DT_INT32", shape=None)
op("TopK", "input: T -> values: T, indices: int32", "k: int >= 0", "sorted: bool = true", "T: realnumbertype",
    deprecated=(7, "Use TopKV2."), shape=None,
)  # fmt: skip
op("TopKV2", "input: T, k: Tk -> values: T, indices: index_type", "sorted: bool = true", "T: realnumbertype",
    "Tk: {int16, int32, int64} = DT_INT32", "index_type: {int16, int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
