"""Quantisation."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import conv2d_shape, matmul_shape, merge_both_inputs_shape, unchanged_shape
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR


def _scalar_ranges(c: InferenceContext) -> None:
    """Set scalar bounds of the result."""
    for i in range(1, c.num_outputs):
        c.set_output(i, SCALAR)


def _fake_quant_shape(c: InferenceContext) -> None:
    """Check that the range is scalar."""
    c.with_rank(c.input(1), 0)
    c.with_rank(c.input(2), 0)
    unchanged_shape(c)


def _fake_quant_grad_shape(c: InferenceContext) -> None:
    """Set the gradients of the input, of the lower bound and of the upper bound."""
    c.with_rank(c.input(2), 0)
    c.with_rank(c.input(3), 0)
    merge_both_inputs_shape(c)
    _scalar_ranges(c)


def _channel_quant_shape(c: InferenceContext) -> None:
    """Check one range per channel along the last dimension."""
    x = c.with_rank_at_least(c.input(0), 1)
    last = c.merge_dim(c.with_rank(c.input(1), 1)[0], c.with_rank(c.input(2), 1)[0])
    c.set_output(0, c.replace_dim(x, -1, c.merge_dim(x[-1], last)) if x.rank is not None else x)


def _channel_quant_grad_shape(c: InferenceContext) -> None:
    x = c.with_rank_at_least(c.merge(c.input(0), c.input(1)), 1)
    last = c.merge_dim(c.with_rank(c.input(2), 1)[0], c.with_rank(c.input(3), 1)[0])
    last = c.merge_dim(last, x[-1])
    c.set_output(0, x)
    c.set_output(1, (last,))
    c.set_output(2, (last,))


def _quantize_shape(c: InferenceContext) -> None:
    """Set scalar ranges, or vectors along the axis."""
    axis, x = c.attr("axis"), c.input(0)
    unchanged_shape(c)
    for i in (1, 2):
        c.set_output(i, SCALAR if axis == -1 else (x[c.axis(axis, x)] if x.rank is not None else None,))


def _conv_shape(c: InferenceContext) -> None:
    conv2d_shape(c)
    _scalar_ranges(c)


def _matmul_shape(c: InferenceContext) -> None:
    matmul_shape(c)
    _scalar_ranges(c)


def _requantize_shape(c: InferenceContext) -> None:
    unchanged_shape(c)
    _scalar_ranges(c)


op("Dequantize", "input: T, min_range: float, max_range: float -> output: dtype", "T: quantizedtype",
    "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'", "narrow_range: bool = false", "axis: int = -1",
    "dtype: {bfloat16, float} = DT_FLOAT", shape=unchanged_shape, doc="Convert quantised numbers to floats.",
)  # fmt: skip
op("FakeQuantWithMinMaxArgs", "inputs: float -> outputs: float", "min: float = -6.0", "max: float = 6.0",
    "num_bits: int = 8", "narrow_range: bool = false", shape=unchanged_shape,
    doc="Round floats to the quantised values of a constant range.",
)  # fmt: skip
op("FakeQuantWithMinMaxArgsGradient", "gradients: float, inputs: float -> backprops: float", "min: float = -6.0",
    "max: float = 6.0", "num_bits: int = 8", "narrow_range: bool = false", shape=merge_both_inputs_shape,
    doc="Compute the gradient of FakeQuantWithMinMaxArgs.",
)  # fmt: skip
op("FakeQuantWithMinMaxVars", "inputs: float, min: float, max: float -> outputs: float", "num_bits: int = 8",
    "narrow_range: bool = false", shape=_fake_quant_shape,
    doc="Round floats to the quantised values of a range operand.",
)  # fmt: skip
op("FakeQuantWithMinMaxVarsGradient",
    "gradients: float, inputs: float, min: float, max: float -> backprops_wrt_input: float, backprop_wrt_min: "
    "float, backprop_wrt_max: float", "num_bits: int = 8", "narrow_range: bool = false", shape=_fake_quant_grad_shape,
    doc="Compute the gradient of FakeQuantWithMinMaxVars.",
)  # fmt: skip
op("FakeQuantWithMinMaxVarsPerChannel", "inputs: float, min: float, max: float -> outputs: float", "num_bits: int = 8",
    "narrow_range: bool = false", shape=_channel_quant_shape,
    doc="Round floats to the quantised values of one range per channel.",
)  # fmt: skip
op("FakeQuantWithMinMaxVarsPerChannelGradient",
    "gradients: float, inputs: float, min: float, max: float -> backprops_wrt_input: float, backprop_wrt_min: "
    "float, backprop_wrt_max: float", "num_bits: int = 8", "narrow_range: bool = false",
    shape=_channel_quant_grad_shape, doc="Compute the gradient of FakeQuantWithMinMaxVarsPerChannel.",
)  # fmt: skip
op("QuantizeAndDequantize", "input: T -> output: T", "signed_input: bool = true", "num_bits: int = 8",
    "range_given: bool = false", "input_min: float = 0.0", "input_max: float = 0.0",
    "T: {bfloat16, half, float, double}", deprecated=(22, "Use QuantizeAndDequantizeV2."), shape=unchanged_shape,
    doc="Quantise floats and convert them back.",
)  # fmt: skip
op("QuantizeAndDequantizeV2", "input: T, input_min: T, input_max: T -> output: T", "signed_input: bool = true",
    "num_bits: int = 8", "range_given: bool = false", "T: {bfloat16, half, float, double}",
    "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'", "narrow_range: bool = false", "axis: int = -1",
    shape=unchanged_shape, doc="Quantise floats and convert them back; the range is an operand.",
)  # fmt: skip
op("QuantizeAndDequantizeV3", "input: T, input_min: T, input_max: T, num_bits: int32 -> output: T",
    "signed_input: bool = true", "range_given: bool = true", "T: {bfloat16, half, float, double}",
    "narrow_range: bool = false", "axis: int = -1", shape=unchanged_shape,
    doc="Quantise floats and convert them back; the number of bits is an operand.",
)  # fmt: skip
op("QuantizeAndDequantizeV4", "input: T, input_min: T, input_max: T -> output: T", "signed_input: bool = true",
    "num_bits: int = 8", "range_given: bool = false", "T: {bfloat16, half, float, double}",
    "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'", "narrow_range: bool = false", "axis: int = -1",
    shape=unchanged_shape,
    doc="Quantise floats and convert them back; the gradient passes within the range.",
)  # fmt: skip
op("QuantizeV2", "input: float, min_range: float, max_range: float -> output: T, output_min: float, output_max: float",
    "T: quantizedtype", "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'",
    "round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'", "narrow_range: bool = false",
    "axis: int = -1", "ensure_minimum_range: float = 0.01", shape=_quantize_shape,
    doc="Quantise floats, and return the range.",
)  # fmt: skip
op("QuantizedConv2D",
    "input: Tinput, filter: Tfilter, min_input: float, max_input: float, min_filter: float, max_filter: float "
    "-> output: out_type, min_output: float, max_output: float", "Tinput: quantizedtype", "Tfilter: quantizedtype",
    "out_type: quantizedtype = DT_QINT32", "strides: list(int)", "padding: {'SAME', 'VALID'}",
    "dilations: list(int) = [1, 1, 1, 1]", shape=_conv_shape,
    doc="Convolve quantised numbers, and return the range of the result.",
)  # fmt: skip
op("QuantizedMatMul",
    "a: T1, b: T2, min_a: float, max_a: float, min_b: float, max_b: float -> out: Toutput, min_out: float, "
    "max_out: float", "T1: quantizedtype", "T2: quantizedtype", "Toutput: quantizedtype = DT_QINT32",
    "transpose_a: bool = false", "transpose_b: bool = false", "Tactivation: quantizedtype = DT_QUINT8",
    shape=_matmul_shape, doc="Multiply matrices of quantised numbers, and return the range of the result.",
)  # fmt: skip
op("Requantize",
    "input: Tinput, input_min: float, input_max: float, requested_output_min: float, requested_output_max: "
    "float -> output: out_type, output_min: float, output_max: float", "Tinput: quantizedtype",
    "out_type: quantizedtype", shape=_requantize_shape, doc="Convert quantised numbers to another range.",
)  # fmt: skip
