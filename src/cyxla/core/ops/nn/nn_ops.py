"""Biases, top-k, data formats."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import bias_add_grad_shape, bias_add_shape, unchanged_shape
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import Dim
from cyxla.errors import ShapeError


def _top_k(c: InferenceContext, k: Dim) -> None:
    """Set k elements along the last dimension, and their indices."""
    x = c.with_rank_at_least(c.input(0), 1)
    if x.rank is None:
        return
    last = x[-1]
    if k is not None and last is not None and last < k:
        raise ShapeError(f"{c.op_def.name}: the last dimension is {last}, fewer than the {k} requested")
    for i in range(2):
        c.set_output(i, c.replace_dim(x, -1, k))


def _top_k_shape(c: InferenceContext) -> None:
    _top_k(c, c.attr("k"))


def _top_k_v2_shape(c: InferenceContext) -> None:
    _top_k(c, c.make_dim_for_scalar_input(1))


def _approx_top_k_shape(c: InferenceContext) -> None:
    """Set the reduced size; without aggregation it is unknown."""
    x = c.with_rank_at_least(c.input(0), 1)
    if x.rank is None:
        return
    axis, size = c.axis(c.attr("reduction_dimension"), x), c.attr("k") if c.attr("aggregate_to_topk") else None
    for i in range(2):
        c.set_output(i, c.replace_dim(x, axis, size))


def _in_top_k_shape(c: InferenceContext) -> None:
    """Set one bool per row."""
    x, targets = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 1)
    c.set_output(0, (c.merge_dim(x[0], targets[0]),))


op("ApproxTopK", "input: T -> values: T, indices: int32", "k: int >= 0", "reduction_dimension: int = -1",
    "recall_target: float = 0.95", "is_max_k: bool = true", "reduction_input_size_override: int = -1",
    "aggregate_to_topk: bool = true", "T: {half, bfloat16, float}", shape=_approx_top_k_shape,
    doc="Return approximately the k largest or smallest elements.",
)  # fmt: skip
op("BiasAdd", "value: T, bias: T -> output: T", "T: numbertype", "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    shape=bias_add_shape, doc="Add a vector along the channels.",
)  # fmt: skip
op("BiasAddGrad", "out_backprop: T -> output: T", "T: numbertype", "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    shape=bias_add_grad_shape, doc="Sum over all dimensions except the channels.",
)  # fmt: skip
op("BiasAddV1", "value: T, bias: T -> output: T", "T: numbertype", shape=bias_add_shape,
    doc="Add a vector along the last dimension.",
)  # fmt: skip
op("DataFormatDimMap", "x: T -> y: T", "T: {int32, int64} = DT_INT32", "src_format: string = 'NHWC'",
    "dst_format: string = 'NCHW'", shape=unchanged_shape, doc="Map dimension numbers to another data format.",
)  # fmt: skip
op("DataFormatVecPermute", "x: T -> y: T", "T: {int32, int64} = DT_INT32", "src_format: string = 'NHWC'",
    "dst_format: string = 'NCHW'", shape=unchanged_shape,
    doc="Permute vectors along the dimensions to another data format.",
)  # fmt: skip
op("InTopK", "predictions: float, targets: T -> precision: bool", "k: int", "T: {int32, int64} = DT_INT32",
    shape=_in_top_k_shape, doc="Test if the target of each row is among its k largest elements.",
)  # fmt: skip
op("InTopKV2", "predictions: float, targets: T, k: T -> precision: bool", "T: {int32, int64} = DT_INT32",
    shape=_in_top_k_shape, doc="Test if the target of each row is among its k largest elements.",
)  # fmt: skip
op("TopK", "input: T -> values: T, indices: int32", "k: int >= 0", "sorted: bool = true", "T: realnumbertype",
    deprecated=(7, "Use TopKV2."), shape=_top_k_shape,
    doc="Return the k largest elements along the last dimension, and their indices.",
)  # fmt: skip
op("TopKV2", "input: T, k: Tk -> values: T, indices: index_type", "sorted: bool = true", "T: realnumbertype",
    "Tk: {int16, int32, int64} = DT_INT32", "index_type: {int16, int32, int64} = DT_INT32", shape=_top_k_v2_shape,
    doc="Return the k largest elements along the last dimension, and their indices; equal elements in order.",
)  # fmt: skip
