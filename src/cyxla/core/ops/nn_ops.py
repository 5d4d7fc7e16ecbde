"""Biases, best k, layouts."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import bias_add_grad_shape, bias_add_shape, unchanged_shape
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import Dim
from cyxla.errors import ShapeError


def _top_k(c: InferenceContext, k: Dim) -> None:
    """The k greatest along the last dimension, and where they are."""
    x = c.with_rank_at_least(c.input(0), 1)
    if x.rank is None:
        return
    last = x[-1]
    if k is not None and last is not None and last < k:
        raise ShapeError(f"{c.op_def.name}: the last dimension is {last}, fewer than the {k} asked for")
    for i in range(2):
        c.set_output(i, c.replace_dim(x, -1, k))


def _top_k_shape(c: InferenceContext) -> None:
    _top_k(c, c.attr("k"))


def _top_k_v2_shape(c: InferenceContext) -> None:
    _top_k(c, c.make_dim_for_scalar_input(1))


def _approx_top_k_shape(c: InferenceContext) -> None:
    """Without the last step there are more than k."""
    x = c.with_rank_at_least(c.input(0), 1)
    if x.rank is None:
        return
    axis, size = c.axis(c.attr("reduction_dimension"), x), c.attr("k") if c.attr("aggregate_to_topk") else None
    for i in range(2):
        c.set_output(i, c.replace_dim(x, axis, size))


def _in_top_k_shape(c: InferenceContext) -> None:
    """An answer for each row."""
    x, targets = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 1)
    c.set_output(0, (c.merge_dim(x[0], targets[0]),))


op("ApproxTopK", "input: T -> values: T, indices: int32", "k: int >= 0", "reduction_dimension: int = -1",
    "recall_target: float = 0.95", "is_max_k: bool = true", "reduction_input_size_override: int = -1",
    "aggregate_to_topk: bool = true", "T: {half, bfloat16, float}", shape=_approx_top_k_shape,
    doc="The k greatest or least elements, some of which may be missed.",
)  # fmt: skip
op("BiasAdd", "value: T, bias: T -> output: T", "T: numbertype", "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    shape=bias_add_shape, doc="A vector added along the channels.",
)  # fmt: skip
op("BiasAddGrad", "out_backprop: T -> output: T", "T: numbertype", "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    shape=bias_add_grad_shape, doc="The sum over all but the channels.",
)  # fmt: skip
op("BiasAddV1", "value: T, bias: T -> output: T", "T: numbertype", shape=bias_add_shape,
    doc="A vector added along the last dimension.",
)  # fmt: skip
op("DataFormatDimMap", "x: T -> y: T", "T: {int32, int64} = DT_INT32", "src_format: string = 'NHWC'",
    "dst_format: string = 'NCHW'", shape=unchanged_shape, doc="Numbers of dimensions in another data format.",
)  # fmt: skip
op("DataFormatVecPermute", "x: T -> y: T", "T: {int32, int64} = DT_INT32", "src_format: string = 'NHWC'",
    "dst_format: string = 'NCHW'", shape=unchanged_shape,
    doc="Vectors along the dimensions, permuted into another data format.",
)  # fmt: skip
op("InTopK", "predictions: float, targets: T -> precision: bool", "k: int", "T: {int32, int64} = DT_INT32",
    shape=_in_top_k_shape, doc="Whether the target of each row is among its k greatest.",
)  # fmt: skip
op("InTopKV2", "predictions: float, targets: T, k: T -> precision: bool", "T: {int32, int64} = DT_INT32",
    shape=_in_top_k_shape, doc="Whether the target of each row is among its k greatest.",
)  # fmt: skip
op("TopK", "input: T -> values: T, indices: int32", "k: int >= 0", "sorted: bool = true", "T: realnumbertype",
    deprecated=(7, "Use TopKV2."), shape=_top_k_shape,
    doc="The k greatest along the last dimension, and where they are.",
)  # fmt: skip
op("TopKV2", "input: T, k: Tk -> values: T, indices: index_type", "sorted: bool = true", "T: realnumbertype",
    "Tk: {int16, int32, int64} = DT_INT32", "index_type: {int16, int32, int64} = DT_INT32", shape=_top_k_v2_shape,
    doc="The k greatest along the last dimension, and where they are; lower places first among equals.",
)  # fmt: skip
