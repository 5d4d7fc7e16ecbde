"""Convolutions and their gradients."""

from cyxla.core.framework.op import op

op("Conv", "input: T, filter: T -> output: T", "T: {half, bfloat16, float, double, int32}", "strides: list(int)",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'CHANNELS_FIRST', 'CHANNELS_LAST'} = 'CHANNELS_LAST'", "dilations: list(int) = []",
    "batch_dims: int = 1", "groups: int = 1", shape=None,
)  # fmt: skip
op("Conv2D", "input: T, filter: T -> output: T", "T: {half, bfloat16, float, double, int32}", "strides: list(int)",
    "use_cudnn_on_gpu: bool = true", "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", shape=None,
)  # fmt: skip
op("Conv2DBackpropFilter", "input: T, filter_sizes: int32, out_backprop: T -> output: T",
    "T: {half, bfloat16, float, double}", "strides: list(int)", "use_cudnn_on_gpu: bool = true",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", shape=None,
)  # fmt: skip
op("Conv2DBackpropFilterV2", "input: T, filter: T, out_backprop: T -> output: T", "T: {half, bfloat16, float, double}",
    "strides: list(int)", "use_cudnn_on_gpu: bool = true", "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []", "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]", shape=None,
)  # fmt: skip
op("Conv2DBackpropInput", "input_sizes: int32, filter: T, out_backprop: T -> output: T",
    "T: {half, bfloat16, float, double, int32}", "strides: list(int)", "use_cudnn_on_gpu: bool = true",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", shape=None,
)  # fmt: skip
op("Conv2DBackpropInputV2", "input: T, filter: T, out_backprop: T -> output: T",
    "T: {half, bfloat16, float, double, int32}", "strides: list(int)", "use_cudnn_on_gpu: bool = true",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", shape=None,
)  # fmt: skip
op("Conv3D", "input: T, filter: T -> output: T", "T: {half, bfloat16, float, double}", "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}", "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'", "dilations: list(int) = [1, 1, 1, 1, 1]",
    shape=None,
)  # fmt: skip
op("Conv3DBackpropFilterV2", "input: T, filter_sizes: int32, out_backprop: T -> output: T",
    "T: {half, bfloat16, float, double}", "strides: list(int) >= 5", "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'", "dilations: list(int) = [1, 1, 1, 1, 1]", shape=None,
)  # fmt: skip
op("Conv3DBackpropInputV2", "input_sizes: Tshape, filter: T, out_backprop: T -> output: T",
    "T: {half, bfloat16, float, double}", "strides: list(int) >= 5", "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'", "dilations: list(int) = [1, 1, 1, 1, 1]",
    "Tshape: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("DepthwiseConv2dNative", "input: T, filter: T -> output: T", "T: {half, bfloat16, float, double}",
    "strides: list(int)", "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", shape=None,
)  # fmt: skip
op("DepthwiseConv2dNativeBackpropFilter", "input: T, filter_sizes: int32, out_backprop: T -> output: T",
    "T: {half, bfloat16, float, double}", "strides: list(int)", "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []", "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]", shape=None,
)  # fmt: skip
op("DepthwiseConv2dNativeBackpropInput", "input_sizes: int32, filter: T, out_backprop: T -> output: T",
    "T: {half, bfloat16, float, double}", "strides: list(int)", "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []", "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]", shape=None,
)  # fmt: skip
op("Dilation2D", "input: T, filter: T -> output: T", "T: realnumbertype", "strides: list(int) >= 4",
    "rates: list(int) >= 4", "padding: {'SAME', 'VALID'}", shape=None,
)  # fmt: skip
op("FusedPadConv2D", "input: T, paddings: int32, filter: T -> output: T", "T: {half, bfloat16, float, double}",
    "mode: {'REFLECT', 'SYMMETRIC'}", "strides: list(int)", "padding: {'SAME', 'VALID'}", shape=None,
)  # fmt: skip
op("FusedResizeAndPadConv2D", "input: T, size: int32, paddings: int32, filter: T -> output: T",
    "T: {half, float, double}", "resize_align_corners: bool = false", "mode: {'REFLECT', 'SYMMETRIC'}",
    "strides: list(int)", "padding: {'SAME', 'VALID'}", shape=None,
)  # fmt: skip
op("_FusedConv2D", "input: T, filter: T, args: TArgs, host_args: num_host_args * float -> output: T",
    "T: {half, float, double, int8, qint8}", "TArgs: list(type)", "num_args: int >= 0", "num_host_args: int >= 0 = 0",
    "strides: list(int)", "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", "filter_format: {'HWIO', 'OIHW', 'OIHW_VECT_I'} = 'HWIO'",
    "dilations: list(int) = [1, 1, 1, 1]", "use_cudnn_on_gpu: bool = true", "fused_ops: list(string) = []",
    "epsilon: float = 0.0001", "leakyrelu_alpha: float = 0.2", shape=None,
)  # fmt: skip
op("_FusedDepthwiseConv2dNative", "input: T, filter: T, args: num_args * T -> output: T",
    "T: {half, bfloat16, float, double}", "num_args: int >= 0", "strides: list(int)", "padding: {'SAME', 'VALID'}",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", "fused_ops: list(string) = []",
    "epsilon: float = 0.0001", "leakyrelu_alpha: float = 0.2", shape=None,
)  # fmt: skip
