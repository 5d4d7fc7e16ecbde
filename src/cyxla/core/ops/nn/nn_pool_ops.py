"""Pooling and its gradients."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import (
    avg_pool_grad_shape,
    avg_pool_shape,
    max_pool_shape,
    max_pool_v2_shape,
    pool3d_shape,
    unchanged_shape_with_rank,
)
from cyxla.core.framework.shape_inference import InferenceContext


def _grad_grad_shape(c: InferenceContext) -> None:
    """Set the shape of the pooled input."""
    max_pool_shape(c)
    c.merge(c.input(0), c.input(2))
    c.set_output(0, c.merge(c.output(0), c.input(1)))


def _grad_grad_v2_shape(c: InferenceContext) -> None:
    max_pool_v2_shape(c)
    c.merge(c.input(0), c.input(2))
    c.set_output(0, c.merge(c.output(0), c.input(1)))


def _grad_grad_3d_shape(c: InferenceContext) -> None:
    pool3d_shape(c)
    c.merge(c.input(0), c.input(2))
    c.set_output(0, c.merge(c.output(0), c.input(1)))


def _grad_grad_argmax_shape(c: InferenceContext) -> None:
    max_pool_shape(c)
    c.merge(c.input(0), c.input(1))
    c.set_output(0, c.merge(c.output(0), c.input(2)))


def _argmax_shape(c: InferenceContext) -> None:
    """Set the maxima and their indices."""
    max_pool_shape(c)
    c.set_output(1, c.output(0))


op("AvgPool", "value: T -> output: T", "ksize: list(int) >= 4", "strides: list(int) >= 4", "padding: {'SAME', 'VALID'}",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "T: {half, bfloat16, float, double}", shape=avg_pool_shape,
    doc="Compute the mean of each window.",
)  # fmt: skip
op("AvgPool3D", "input: T -> output: T", "ksize: list(int) >= 5", "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}", "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'", "T: {half, bfloat16, float, double}",
    shape=pool3d_shape, doc="Compute the mean of each window over depth, height and width.",
)  # fmt: skip
op("AvgPool3DGrad", "orig_input_shape: int32, grad: T -> output: T", "ksize: list(int) >= 5", "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}", "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'", "T: {half, bfloat16, float, double}",
    shape=avg_pool_grad_shape, doc="Compute the gradient of AvgPool3D.",
)  # fmt: skip
op("AvgPoolGrad", "orig_input_shape: int32, grad: T -> output: T", "ksize: list(int) >= 4", "strides: list(int) >= 4",
    "padding: {'SAME', 'VALID'}", "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "T: {half, bfloat16, float, double}",
    shape=avg_pool_grad_shape, doc="Compute the gradient of AvgPool.",
)  # fmt: skip
op("MaxPool", "input: T -> output: T",
    "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT",
    "ksize: list(int) >= 4", "strides: list(int) >= 4", "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []", "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", shape=max_pool_shape,
    doc="Compute the maximum of each window.",
)  # fmt: skip
op("MaxPool3D", "input: T -> output: T", "ksize: list(int) >= 5", "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}", "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'", "T: {half, bfloat16, float}",
    shape=pool3d_shape, doc="Compute the maximum of each window over depth, height and width.",
)  # fmt: skip
op("MaxPool3DGrad", "orig_input: TInput, orig_output: TInput, grad: T -> output: T", "ksize: list(int) >= 5",
    "strides: list(int) >= 5", "padding: {'SAME', 'VALID'}", "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "T: {half, bfloat16, float} = DT_FLOAT", "TInput: {half, bfloat16, float} = DT_FLOAT",
    shape=unchanged_shape_with_rank(5), doc="Compute the gradient of MaxPool3D.",
)  # fmt: skip
op("MaxPool3DGradGrad", "orig_input: T, orig_output: T, grad: T -> output: T", "ksize: list(int) >= 5",
    "strides: list(int) >= 5", "padding: {'SAME', 'VALID'}", "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "T: realnumbertype", shape=_grad_grad_3d_shape, doc="Compute the gradient of MaxPool3DGrad.",
)  # fmt: skip
op("MaxPoolGrad", "orig_input: T, orig_output: T, grad: T -> output: T", "ksize: list(int) >= 4",
    "strides: list(int) >= 4", "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "T: realnumbertype = DT_FLOAT", shape=unchanged_shape_with_rank(4),
    doc="Compute the gradient of MaxPool.",
)  # fmt: skip
op("MaxPoolGradGrad", "orig_input: T, orig_output: T, grad: T -> output: T", "ksize: list(int) >= 4",
    "strides: list(int) >= 4", "padding: {'SAME', 'VALID'}", "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "T: realnumbertype", shape=_grad_grad_shape, doc="Compute the gradient of MaxPoolGrad.",
)  # fmt: skip
op("MaxPoolGradGradV2", "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32 -> output: T",
    "padding: {'SAME', 'VALID'}", "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "T: realnumbertype",
    shape=_grad_grad_v2_shape, doc="Compute the gradient of MaxPoolGradV2; window and strides are operands.",
)  # fmt: skip
op("MaxPoolGradGradWithArgmax", "input: T, grad: T, argmax: Targmax -> output: T", "ksize: list(int) >= 4",
    "strides: list(int) >= 4", "padding: {'SAME', 'VALID'}", "include_batch_in_index: bool = false",
    "Targmax: {int32, int64}", "T: realnumbertype", shape=_grad_grad_argmax_shape,
    doc="Compute the gradient of MaxPoolGradWithArgmax.",
)  # fmt: skip
op("MaxPoolGradV2", "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32 -> output: T",
    "padding: {'SAME', 'VALID'}", "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "T: realnumbertype = DT_FLOAT",
    shape=unchanged_shape_with_rank(4), doc="Compute the gradient of MaxPoolV2; window and strides are operands.",
)  # fmt: skip
op("MaxPoolGradWithArgmax", "input: T, grad: T, argmax: Targmax -> output: T", "ksize: list(int) >= 4",
    "strides: list(int) >= 4", "padding: {'SAME', 'VALID'}", "include_batch_in_index: bool = false",
    "Targmax: {int32, int64}", "T: realnumbertype", shape=unchanged_shape_with_rank(4),
    doc="Compute the gradient of MaxPoolWithArgmax.",
)  # fmt: skip
op("MaxPoolV2", "input: T, ksize: int32, strides: int32 -> output: T",
    "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT",
    "padding: {'SAME', 'VALID'}", "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", shape=max_pool_v2_shape,
    doc="Compute the maximum of each window; window and strides are operands.",
)  # fmt: skip
op("MaxPoolWithArgmax", "input: T -> output: T, argmax: Targmax", "ksize: list(int) >= 4", "strides: list(int) >= 4",
    "Targmax: {int32, int64} = DT_INT64", "padding: {'SAME', 'VALID'}", "include_batch_in_index: bool = false",
    "T: realnumbertype", shape=_argmax_shape, doc="Compute the maximum of each window, and its index.",
)  # fmt: skip
