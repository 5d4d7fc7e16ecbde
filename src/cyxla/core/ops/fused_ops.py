"""Compositions of ops that a device may have one kernel for.

No device has to: what one lacks is written out in plain ops before it runs, or is never composed for it.
"""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import conv2d_shape, matmul_shape, unchanged_shape

_T = "T: {half, bfloat16, float, double}"
_ACTIVATION = "activation: {'', 'Relu', 'Relu6', 'Elu', 'Selu', 'LeakyRelu', 'Tanh', 'Sigmoid', 'Softplus'} = ''"

op("_FusedSoftmax", "logits: T -> softmax: T", _T, "axes: list(int)", "stable: bool = true", shape=unchanged_shape,
    doc="Exponentials that sum up to one along axes.\n\nIf `stable`, the greatest element is taken away first.",
)  # fmt: skip
op("_FusedLayerNorm", "x: T, affine: num_affine * T -> y: T", _T, "num_affine: int >= 0 = 2", "axes: list(int)",
    "epsilon: float", shape=unchanged_shape,
    doc="Mean 0 and variance 1 along axes; then, where there are two more inputs, times the one plus the other.",
)  # fmt: skip
op("_FusedBatchNorm", "x: T, mean: T, variance: T, offset: T, scale: num_scales * T -> y: T", _T,
    "num_scales: int >= 0 = 1", "epsilon: float", shape=unchanged_shape,
    doc="(x - mean) / sqrt(variance + epsilon) * scale + offset with known moments; all are broadcast to x.",
)  # fmt: skip
op("_FusedGelu", "features: T -> activations: T", _T, "approximate: bool", shape=unchanged_shape,
    doc="x times the normal distribution's integral up to x; by the hyperbolic tangent if `approximate`.",
)  # fmt: skip
op("_FusedConv2DBiasActivation", "input: T, filter: T, bias: T -> output: T", _T, "strides: list(int)",
    "use_cudnn_on_gpu: bool = true", "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", _ACTIVATION,
    "alpha: float = 0.2", shape=conv2d_shape,
    doc="A convolution, a vector added along the channels, and a function of each element; `alpha` is LeakyRelu's.",
)  # fmt: skip
op("_FusedMatMulBiasActivation", "a: T, b: T, bias: T -> product: T", _T, "transpose_a: bool = false",
    "transpose_b: bool = false", _ACTIVATION, "alpha: float = 0.2", shape=matmul_shape,
    doc="A product of matrices, a vector added to each row, and a function of each element; `alpha` is LeakyRelu's.",
)  # fmt: skip
