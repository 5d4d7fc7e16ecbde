"""Uniform quantisation."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import broadcast_binary_shape, unchanged_shape, unknown_shape
from cyxla.core.framework.shape_inference import InferenceContext


def _dot_shape(c: InferenceContext) -> None:
    a, b = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 2)
    c.merge_dim(a[1], b[0])
    c.set_output(0, (a[0], b[1]))


op("UniformDequantize", "input: Tin, scales: float, zero_points: int32 -> output: Tout", "Tin: {qint8, quint8, qint32}",
    "Tout: {float}", "quantization_axis: int = -1", "quantization_min_val: int", "quantization_max_val: int",
    shape=unchanged_shape, doc="Convert uniformly quantised numbers to floats.",
)  # fmt: skip
op("UniformQuantize", "input: Tin, scales: float, zero_points: int32 -> output: Tout", "Tin: {float}",
    "Tout: {qint8, quint8, qint32}", "quantization_axis: int = -1", "quantization_min_val: int",
    "quantization_max_val: int", shape=unchanged_shape, doc="Quantise floats uniformly.",
)  # fmt: skip
op("UniformQuantizedAdd",
    "lhs: T, rhs: T, lhs_scales: float, lhs_zero_points: int32, rhs_scales: float, rhs_zero_points: int32, "
    "output_scales: float, output_zero_points: int32 -> output: T", "lhs_quantization_axis: int = -1",
    "lhs_quantization_min_val: int", "lhs_quantization_max_val: int", "rhs_quantization_axis: int = -1",
    "rhs_quantization_min_val: int", "rhs_quantization_max_val: int", "output_quantization_axis: int = -1",
    "output_quantization_min_val: int", "output_quantization_max_val: int", "T: {qint32}", shape=broadcast_binary_shape,
    doc="Add uniformly quantised numbers.",
)  # fmt: skip
op("UniformQuantizedClipByValue", "operand: T, min: T, max: T, scales: float, zero_points: int32 -> output: T",
    "T: {qint32}", "quantization_axis: int = -1", "quantization_min_val: int", "quantization_max_val: int",
    shape=unchanged_shape, doc="Clamp uniformly quantised numbers between two bounds.",
)  # fmt: skip
op("UniformQuantizedConvolution",
    "lhs: Tin, rhs: Tin, lhs_scales: float, lhs_zero_points: int32, rhs_scales: float, rhs_zero_points: int32, "
    "output_scales: float, output_zero_points: int32 -> output: Tout", "Tin: {qint8}", "Tout: {qint32}",
    "window_strides: list(int) = []", "padding: string", "explicit_padding: list(int) = []",
    "lhs_dilation: list(int) = []", "rhs_dilation: list(int) = []", "batch_group_count: int = 1",
    "feature_group_count: int = 1", "dimension_numbers: string = ''", "lhs_quantization_axis: int = -1",
    "lhs_quantization_min_val: int", "lhs_quantization_max_val: int", "rhs_quantization_axis: int = -1",
    "rhs_quantization_min_val: int", "rhs_quantization_max_val: int", "output_quantization_axis: int = -1",
    "output_quantization_min_val: int", "output_quantization_max_val: int", shape=unknown_shape,
    doc="Convolve uniformly quantised numbers.",
)  # fmt: skip
op("UniformQuantizedDot",
    "lhs: Tin, rhs: Tin, lhs_scales: float, lhs_zero_points: int32, rhs_scales: float, rhs_zero_points: int32, "
    "output_scales: float, output_zero_points: int32 -> output: Tout", "Tin: {qint8}", "Tout: {qint32}",
    "lhs_quantization_axis: int = -1", "lhs_quantization_min_val: int", "lhs_quantization_max_val: int",
    "rhs_quantization_axis: int = -1", "rhs_quantization_min_val: int", "rhs_quantization_max_val: int",
    "output_quantization_axis: int = -1", "output_quantization_min_val: int", "output_quantization_max_val: int",
    shape=_dot_shape, doc="Multiply matrices of uniformly quantised numbers.",
)  # fmt: skip
op("UniformRequantize",
    "input: Tin, input_scales: float, input_zero_points: int32, output_scales: float, output_zero_points: "
    "int32 -> output: Tout", "Tin: {qint8, qint32}", "Tout: {qint8, qint32}", "input_quantization_axis: int = -1",
    "input_quantization_min_val: int", "input_quantization_max_val: int", "output_quantization_axis: int = -1",
    "output_quantization_min_val: int", "output_quantization_max_val: int", shape=unchanged_shape,
    doc="Convert uniformly quantised numbers to another scale.",
)  # fmt: skip
