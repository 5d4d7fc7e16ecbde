"""Convolutions and their gradients."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import (
    conv2d_shape,
    conv3d_shape,
    conv_shape,
    depthwise_conv2d_shape,
    windowed_output_size,
)
from cyxla.core.framework.shape_fns.windows import Layout
from cyxla.core.framework.shape_inference import InferenceContext


def _filter_sizes_shape(c: InferenceContext) -> None:
    """Set the filter's shape, which the second input holds."""
    c.set_output(0, c.with_rank(c.make_shape_from_shape_tensor(1), len(c.attr("strides"))))


def _input_sizes_shape(c: InferenceContext) -> None:
    """Set the input's shape, which the first input holds fully or by its spatial sizes only."""
    sizes, layout = c.make_shape_from_shape_tensor(0), Layout.of(c.attr("data_format"))
    if sizes.rank == len(layout.spatial):
        kernel, grad = c.with_rank(c.input(1), layout.rank), c.with_rank(c.input(2), layout.rank)
        sizes = layout.shape(grad[layout.batch], kernel[layout.rank - 2], list(sizes))
    c.set_output(0, c.with_rank(sizes, layout.rank))


def _like_filter_shape(c: InferenceContext) -> None:
    c.set_output(0, c.with_rank(c.input(1), 4))


def _like_input_shape(c: InferenceContext) -> None:
    c.set_output(0, c.with_rank(c.input(0), 4))


def _dilation_shape(c: InferenceContext) -> None:
    """Set the shape of a dilation by a filter [height, width, channels]."""
    x, kernel = c.with_rank(c.input(0), 4), c.with_rank(c.input(1), 3)
    strides, rates, padding = c.attr("strides"), c.attr("rates"), c.attr("padding")
    sizes = [windowed_output_size(x[i], kernel[i - 1], strides[i], padding, rates[i]) for i in (1, 2)]
    c.set_output(0, (x[0], *sizes, c.merge_dim(x[3], kernel[2])))


def _fused_conv_shape(c: InferenceContext) -> None:
    """Set the shape as for Conv2D; formats with vectorised channels are left unknown."""
    if "VECT" not in c.attr("data_format") + c.attr("filter_format"):
        conv2d_shape(c)


def _padded_conv_shape(c: InferenceContext) -> None:
    """Leave the spatial sizes unknown, which depend on the padding before the convolution."""
    x, kernel = c.with_rank(c.input(0), 4), c.with_rank(c.input("filter"), 4)
    c.merge_dim(x[3], kernel[2])
    c.set_output(0, (x[0], None, None, kernel[3]))


op("Conv", "input: T, filter: T -> output: T", "T: {half, bfloat16, float, double, int32}", "strides: list(int)",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'CHANNELS_FIRST', 'CHANNELS_LAST'} = 'CHANNELS_LAST'", "dilations: list(int) = []",
    "batch_dims: int = 1", "groups: int = 1", shape=conv_shape,
    doc="Convolve over two or three dimensions after any number of batch dimensions.",
)  # fmt: skip
op("Conv2D", "input: T, filter: T -> output: T", "T: {half, bfloat16, float, double, int32}", "strides: list(int)",
    "use_cudnn_on_gpu: bool = true", "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", shape=conv2d_shape,
    doc="Convolve over height and width.",
)  # fmt: skip
op("Conv2DBackpropFilter", "input: T, filter_sizes: int32, out_backprop: T -> output: T",
    "T: {half, bfloat16, float, double}", "strides: list(int)", "use_cudnn_on_gpu: bool = true",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", shape=_filter_sizes_shape,
    doc="Compute the gradient of Conv2D with respect to the filter.",
)  # fmt: skip
op("Conv2DBackpropFilterV2", "input: T, filter: T, out_backprop: T -> output: T", "T: {half, bfloat16, float, double}",
    "strides: list(int)", "use_cudnn_on_gpu: bool = true", "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []", "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]", shape=_like_filter_shape,
    doc="Compute the gradient of Conv2D with respect to the filter, which gives the shape.",
)  # fmt: skip
op("Conv2DBackpropInput", "input_sizes: int32, filter: T, out_backprop: T -> output: T",
    "T: {half, bfloat16, float, double, int32}", "strides: list(int)", "use_cudnn_on_gpu: bool = true",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", shape=_input_sizes_shape,
    doc="Compute the gradient of Conv2D with respect to the input.",
)  # fmt: skip
op("Conv2DBackpropInputV2", "input: T, filter: T, out_backprop: T -> output: T",
    "T: {half, bfloat16, float, double, int32}", "strides: list(int)", "use_cudnn_on_gpu: bool = true",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", shape=_like_input_shape,
    doc="Compute the gradient of Conv2D with respect to the input, which gives the shape.",
)  # fmt: skip
op("Conv3D", "input: T, filter: T -> output: T", "T: {half, bfloat16, float, double}", "strides: list(int) >= 5",
    "padding: {'SAME', 'VALID'}", "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'", "dilations: list(int) = [1, 1, 1, 1, 1]",
    shape=conv3d_shape, doc="Convolve over depth, height and width.",
)  # fmt: skip
op("Conv3DBackpropFilterV2", "input: T, filter_sizes: int32, out_backprop: T -> output: T",
    "T: {half, bfloat16, float, double}", "strides: list(int) >= 5", "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'", "dilations: list(int) = [1, 1, 1, 1, 1]", shape=_filter_sizes_shape,
    doc="Compute the gradient of Conv3D with respect to the filter.",
)  # fmt: skip
op("Conv3DBackpropInputV2", "input_sizes: Tshape, filter: T, out_backprop: T -> output: T",
    "T: {half, bfloat16, float, double}", "strides: list(int) >= 5", "padding: {'SAME', 'VALID'}",
    "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'", "dilations: list(int) = [1, 1, 1, 1, 1]",
    "Tshape: {int32, int64} = DT_INT32", shape=_input_sizes_shape,
    doc="Compute the gradient of Conv3D with respect to the input.",
)  # fmt: skip
op("DepthwiseConv2dNative", "input: T, filter: T -> output: T", "T: {half, bfloat16, float, double}",
    "strides: list(int)", "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", shape=depthwise_conv2d_shape,
    doc="Convolve each channel with its own filters.",
)  # fmt: skip
op("DepthwiseConv2dNativeBackpropFilter", "input: T, filter_sizes: int32, out_backprop: T -> output: T",
    "T: {half, bfloat16, float, double}", "strides: list(int)", "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []", "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]", shape=_filter_sizes_shape,
    doc="Compute the gradient of DepthwiseConv2dNative with respect to the filter.",
)  # fmt: skip
op("DepthwiseConv2dNativeBackpropInput", "input_sizes: int32, filter: T, out_backprop: T -> output: T",
    "T: {half, bfloat16, float, double}", "strides: list(int)", "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []", "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]", shape=_input_sizes_shape,
    doc="Compute the gradient of DepthwiseConv2dNative with respect to the input.",
)  # fmt: skip
op("Dilation2D", "input: T, filter: T -> output: T", "T: realnumbertype", "strides: list(int) >= 4",
    "rates: list(int) >= 4", "padding: {'SAME', 'VALID'}", shape=_dilation_shape,
    doc="Compute grey-scale dilation: the maximum of window plus filter.",
)  # fmt: skip
op("FusedPadConv2D", "input: T, paddings: int32, filter: T -> output: T", "T: {half, bfloat16, float, double}",
    "mode: {'REFLECT', 'SYMMETRIC'}", "strides: list(int)", "padding: {'SAME', 'VALID'}", shape=_padded_conv_shape,
    doc="Pad by mirroring and convolve.",
)  # fmt: skip
op("FusedResizeAndPadConv2D", "input: T, size: int32, paddings: int32, filter: T -> output: T",
    "T: {half, float, double}", "resize_align_corners: bool = false", "mode: {'REFLECT', 'SYMMETRIC'}",
    "strides: list(int)", "padding: {'SAME', 'VALID'}", shape=_padded_conv_shape,
    doc="Resize, pad by mirroring and convolve.",
)  # fmt: skip
op("_FusedConv2D", "input: T, filter: T, args: TArgs, host_args: num_host_args * float -> output: T",
    "T: {half, float, double, int8, qint8}", "TArgs: list(type)", "num_args: int >= 0", "num_host_args: int >= 0 = 0",
    "strides: list(int)", "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", "filter_format: {'HWIO', 'OIHW', 'OIHW_VECT_I'} = 'HWIO'",
    "dilations: list(int) = [1, 1, 1, 1]", "use_cudnn_on_gpu: bool = true", "fused_ops: list(string) = []",
    "epsilon: float = 0.0001", "leakyrelu_alpha: float = 0.2", shape=_fused_conv_shape,
    doc="Convolve and apply element-wise ops to the result.",
)  # fmt: skip
op("_FusedDepthwiseConv2dNative", "input: T, filter: T, args: num_args * T -> output: T",
    "T: {half, bfloat16, float, double}", "num_args: int >= 0", "strides: list(int)", "padding: {'SAME', 'VALID'}",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", "fused_ops: list(string) = []",
    "epsilon: float = 0.0001", "leakyrelu_alpha: float = 0.2", shape=depthwise_conv2d_shape,
    doc="Convolve each channel with its own filters and apply element-wise ops to the result.",
)  # fmt: skip
