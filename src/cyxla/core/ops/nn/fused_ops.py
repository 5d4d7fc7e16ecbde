"""Compositions of ops for which a device may have a single kernel.

Support is optional: for devices without such kernels, compositions are expanded to plain ops before they run, or never
formed.
"""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import conv2d_shape, matmul_shape, unchanged_shape

_T = "T: {half, bfloat16, float, double}"
_ACTIVATION = "activation: {'', 'Relu', 'Relu6', 'Elu', 'Selu', 'LeakyRelu', 'Tanh', 'Sigmoid', 'Softplus'} = ''"

op("_FusedSoftmax", "logits: T -> softmax: T", _T, "axes: list(int)", "stable: bool = true", shape=unchanged_shape,
    doc="Compute the softmax along axes.\n\nIf `stable`, the maximum is subtracted first.",
)  # fmt: skip
op("_FusedLayerNorm", "x: T, affine: num_affine * T -> y: T", _T, "num_affine: int >= 0 = 2", "axes: list(int)",
    "epsilon: float", shape=unchanged_shape,
    doc="Normalise to mean 0 and variance 1 along axes; two more inputs are a scale and an offset.",
)  # fmt: skip
op("_FusedBatchNorm", "x: T, mean: T, variance: T, offset: T, scale: num_scales * T -> y: T", _T,
    "num_scales: int >= 0 = 1", "epsilon: float", shape=unchanged_shape,
    doc="Compute (x - mean) / sqrt(variance + epsilon) * scale + offset with given moments, broadcast to x.",
)  # fmt: skip
op("_FusedGelu", "features: T -> activations: T", _T, "approximate: bool", shape=unchanged_shape,
    doc="Compute the Gaussian error linear unit; by the hyperbolic tangent if `approximate`.",
)  # fmt: skip
op("_FusedConv2DBiasActivation", "input: T, filter: T, bias: T -> output: T", _T, "strides: list(int)",
    "use_cudnn_on_gpu: bool = true", "padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "dilations: list(int) = [1, 1, 1, 1]", _ACTIVATION,
    "alpha: float = 0.2", shape=conv2d_shape,
    doc="Convolve, add a bias per channel, and apply an activation; `alpha` is that of LeakyRelu.",
)  # fmt: skip
op("_FusedMatMulBiasActivation", "a: T, b: T, bias: T -> product: T", _T, "transpose_a: bool = false",
    "transpose_b: bool = false", _ACTIVATION, "alpha: float = 0.2", shape=matmul_shape,
    doc="Multiply matrices, add a bias to each row, and apply an activation; `alpha` is that of LeakyRelu.",
)  # fmt: skip
