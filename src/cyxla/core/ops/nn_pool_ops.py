"""Pooling and its gradients."""

from cyxla.core.framework.op import op

op("AvgPool", "value: T -> output: T", "ksize: list(int) >= 4", "strides: list(int) >= 4", "padding: {'SAME', 'VALID'}",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "T: {half, bfloat16, float, double}", shape=None,
)  # fmt: skip
op("AvgPool3D", "input: T -> output: T", "ksize: list(int) >= 5", "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}", "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'", "T: {half, bfloat16, float, double}",
    shape=None,
)  # fmt: skip
op("AvgPool3DGrad", "orig_input_shape: int32, grad: T -> output: T", "ksize: list(int) >= 5", "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}", "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'", "T: {half, bfloat16, float, double}",
    shape=None,
)  # fmt: skip
op("AvgPoolGrad", "orig_input_shape: int32, grad: T -> output: T", "ksize: list(int) >= 4", "strides: list(int) >= 4",
    "padding: {'SAME', 'VALID'}", "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "T: {half, bfloat16, float, double}",
    shape=None,
)  # fmt: skip
op("MaxPool", "input: T -> output: T",
    "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT",
    "ksize: list(int) >= 4", "strides: list(int) >= 4", "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []", "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", shape=None,
)  # fmt: skip
op("MaxPool3D", "input: T -> output: T", "ksize: list(int) >= 5", "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}", "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'", "T: {half, bfloat16, float}", shape=None,
)  # fmt: skip
op("MaxPool3DGrad", "orig_input: TInput, orig_output: TInput, grad: T -> output: T", "ksize: list(int) >= 5",
    "strides: list(int) >= 5", "padding: {'SAME', 'VALID'}", "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "T: {half, bfloat16, float} = DT_FLOAT", "TInput: {half, bfloat16, float} = DT_FLOAT", shape=None,
)  # fmt: skip
op("MaxPool3DGradGrad", "orig_input: T, orig_output: T, grad: T -> output: T", "ksize: list(int) >= 5",
    "strides: list(int) >= 5", "padding: {'SAME', 'VALID'}", "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
    "T: realnumbertype", shape=None,
)  # fmt: skip
op("MaxPoolGrad", "orig_input: T, orig_output: T, grad: T -> output: T", "ksize: list(int) >= 4",
    "strides: list(int) >= 4", "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "T: realnumbertype = DT_FLOAT", shape=None,
)  # fmt: skip
op("MaxPoolGradGrad", "orig_input: T, orig_output: T, grad: T -> output: T", "ksize: list(int) >= 4",
    "strides: list(int) >= 4", "padding: {'SAME', 'VALID'}", "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "T: realnumbertype", shape=None,
)  # fmt: skip
op("MaxPoolGradGradV2", "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32 -> output: T",
    "padding: {'SAME', 'VALID'}", "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "T: realnumbertype", shape=None,
)  # fmt: skip
op("MaxPoolGradGradWithArgmax", "input: T, grad: T, argmax: Targmax -> output: T", "ksize: list(int) >= 4",
    "strides: list(int) >= 4", "padding: {'SAME', 'VALID'}", "include_batch_in_index: bool = false",
    "Targmax: {int32, int64}", "T: realnumbertype", shape=None,
)  # fmt: skip
op("MaxPoolGradV2", "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32 -> output: T",
    "padding: {'SAME', 'VALID'}", "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "T: realnumbertype = DT_FLOAT", shape=None,
)  # fmt: skip
op("MaxPoolGradWithArgmax", "input: T, grad: T, argmax: Targmax -> output: T", "ksize: list(int) >= 4",
    "strides: list(int) >= 4", "padding: {'SAME', 'VALID'}", "include_batch_in_index: bool = false",
    "Targmax: {int32, int64}", "T: realnumbertype", shape=None,
)  # fmt: skip
op("MaxPoolV2", "input: T, ksize: int32, strides: int32 -> output: T",
    "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT",
    "padding: {'SAME', 'VALID'}", "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", shape=None,
)  # fmt: skip
op("MaxPoolWithArgmax", "input: T -> output: T, argmax: Targmax", "ksize: list(int) >= 4", "strides: list(int) >= 4",
    "Targmax: {int32, int64} = DT_INT64", "padding: {'SAME', 'VALID'}", "include_batch_in_index: bool = false",
    "T: realnumbertype", shape=None,
)  # fmt: skip
