"""Quantisation."""

from cyxla.core.framework.op import op

op("Dequantize", "input: T, min_range: float, max_range: float -> output: dtype", "T: quantizedtype",
    "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'", "narrow_range: bool = false", "axis: int = -1",
    "dtype: {bfloat16, float} = DT_FLOAT", shape=None,
)  # fmt: skip
op("FakeQuantWithMinMaxArgs", "inputs: float -> outputs: float", "min: float = -6.0", "max: float = 6.0",
    "num_bits: int = 8", "narrow_range: bool = false", shape=None,
)  # fmt: skip
op("FakeQuantWithMinMaxArgsGradient", "gradients: float, inputs: float -> backprops: float", "min: float = -6.0",
    "max: float = 6.0", "num_bits: int = 8", "narrow_range: bool = false", shape=None,
)  # fmt: skip
op("FakeQuantWithMinMaxVars", "inputs: float, min: float, max: float -> outputs: float", "num_bits: int = 8",
    "narrow_range: bool = false", shape=None,
)  # fmt: skip
op("FakeQuantWithMinMaxVarsGradient",
    "gradients: float, inputs: float, min: float, max: float -> backprops_wrt_input: float, backprop_wrt_min: "
    "float, backprop_wrt_max: float", "num_bits: int = 8", "narrow_range: bool = false", shape=None,
)  # fmt: skip
op("FakeQuantWithMinMaxVarsPerChannel", "inputs: float, min: float, max: float -> outputs: float", "num_bits: int = 8",
    "narrow_range: bool = false", shape=None,
)  # fmt: skip
op("FakeQuantWithMinMaxVarsPerChannelGradient",
    "gradients: float, inputs: float, min: float, max: float -> backprops_wrt_input: float, backprop_wrt_min: "
    "float, backprop_wrt_max: float", "num_bits: int = 8", "narrow_range: bool = false", shape=None,
)  # fmt: skip
op("QuantizeAndDequantize", "input: T -> output: T", "signed_input: bool = true", "num_bits: int = 8",
    "range_given: bool = false", "input_min: float = 0.0", "input_max: float = 0.0",
    "T: {bfloat16, half, float, double}", deprecated=(22, "Use QuantizeAndDequantizeV2."), shape=None,
)  # fmt: skip
op("QuantizeAndDequantizeV2", "input: T, input_min: T, input_max: T -> output: T", "signed_input: bool = true",
    "num_bits: int = 8", "range_given: bool = false", "T: {bfloat16, half, float, double}",
    "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'", "narrow_range: bool = false", "axis: int = -1",
    shape=None,
)  # fmt: skip
op("QuantizeAndDequantizeV3", "input: T, input_min: T, input_max: T, num_bits: int32 -> output: T",
    "signed_input: bool = true", "range_given: bool = true", "T: {bfloat16, half, float, double}",
    "narrow_range: bool = false", "axis: int = -1", shape=None,
)  # fmt: skip
op("QuantizeAndDequantizeV4", "input: T, input_min: T, input_max: T -> output: T", "signed_input: bool = true",
    "num_bits: int = 8", "range_given: bool = false", "T: {bfloat16, half, float, double}",
    "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'", "narrow_range: bool = false", "axis: int = -1",
    shape=None,
)  # fmt: skip
op("QuantizeV2", "input: float, min_range: float, max_range: float -> output: T, output_min: float, output_max: float",
    "T: quantizedtype", "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'",
    "round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'", "narrow_range: bool = false",
    "axis: int = -1", "ensure_minimum_range: float = 0.01", shape=None,
)  # fmt: skip
op("QuantizedConv2D",
    "input: Tinput, filter: Tfilter, min_input: float, max_input: float, min_filter: float, max_filter: float "
    "-> output: out_type, min_output: float, max_output: float", "Tinput: quantizedtype", "Tfilter: quantizedtype",
    "out_type: quantizedtype = DT_QINT32", "strides: list(int)", "padding: {'SAME', 'VALID'}",
    "dilations: list(int) = [1, 1, 1, 1]", shape=None,
)  # fmt: skip
op("QuantizedMatMul",
    "a: T1, b: T2, min_a: float, max_a: float, min_b: float, max_b: float -> out: Toutput, min_out: float, "
    "max_out: float", "T1: quantizedtype", "T2: quantizedtype", "Toutput: quantizedtype = DT_QINT32",
    "transpose_a: bool = false", "transpose_b: bool = false", "Tactivation: quantizedtype = DT_QUINT8", shape=None,
)  # fmt: skip
op("Requantize",
    "input: Tinput, input_min: float, input_max: float, requested_output_min: float, requested_output_max: "
    "float -> output: out_type, output_min: float, output_max: float", "Tinput: quantizedtype",
    "out_type: quantizedtype", shape=None,
)  # fmt: skip
