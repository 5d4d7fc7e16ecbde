"""Normalisation and its gradients."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import (
    fused_batch_norm_grad_shape,
    fused_batch_norm_shape,
    unchanged_shape_with_rank,
)
from cyxla.core.framework.shape_inference import InferenceContext


def _global_norm_shape(c: InferenceContext) -> None:
    """Merge the vectors with the last dimension."""
    x = c.with_rank(c.input(0), 4)
    last = x[3]
    for i in range(1, 5):
        last = c.merge_dim(last, c.with_rank(c.input(i), 1)[0])
    c.set_output(0, c.replace_dim(x, 3, last))


def _lrn_grad_shape(c: InferenceContext) -> None:
    shape = c.with_rank(c.input(0), 4)
    for i in (1, 2):
        shape = c.merge(shape, c.input(i))
    c.set_output(0, shape)


op("BatchNormWithGlobalNormalization", "t: T, m: T, v: T, beta: T, gamma: T -> result: T", "T: numbertype",
    "variance_epsilon: float", "scale_after_normalization: bool",
    deprecated=(9, "Use a batch normalisation of basic ops."), shape=_global_norm_shape,
    doc="Normalise a batch with given mean and variance.",
)  # fmt: skip
op("FusedBatchNorm", "x: T, scale: T, offset: T, mean: T, variance: T -> y: T, batch_mean: T, batch_variance: T, "
    "reserve_space_1: T, reserve_space_2: T", "T: {float}", "epsilon: float = 0.0001",
    "exponential_avg_factor: float = 1.0", "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "is_training: bool = true",
    shape=fused_batch_norm_shape, doc="Normalise a batch, and return the statistics.",
)  # fmt: skip
op("FusedBatchNormGrad",
    "y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T -> x_backprop: T, scale_backprop: "
    "T, offset_backprop: T, reserve_space_3: T, reserve_space_4: T", "T: {float}", "epsilon: float = 0.0001",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "is_training: bool = true", shape=fused_batch_norm_grad_shape,
    doc="Compute the gradient of FusedBatchNorm.",
)  # fmt: skip
op("FusedBatchNormGradV2",
    "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U -> x_backprop: T, "
    "scale_backprop: U, offset_backprop: U, reserve_space_3: U, reserve_space_4: U", "T: {half, bfloat16, float}",
    "U: {float}", "epsilon: float = 0.0001", "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "is_training: bool = true",
    shape=fused_batch_norm_grad_shape, doc="Compute the gradient of FusedBatchNormV2.",
)  # fmt: skip
op("FusedBatchNormGradV3",
    "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U -> "
    "x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_4: U, reserve_space_5: U",
    "T: {half, bfloat16, float}", "U: {float}", "epsilon: float = 0.0001",
    "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'", "is_training: bool = true",
    shape=fused_batch_norm_grad_shape, doc="Compute the gradient of FusedBatchNormV3.",
)  # fmt: skip
op("FusedBatchNormV2", "x: T, scale: U, offset: U, mean: U, variance: U -> y: T, batch_mean: U, batch_variance: U, "
    "reserve_space_1: U, reserve_space_2: U", "T: {half, bfloat16, float}", "U: {float}", "epsilon: float = 0.0001",
    "exponential_avg_factor: float = 1.0", "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "is_training: bool = true",
    shape=fused_batch_norm_shape, doc="Normalise a batch, with statistics of another type.",
)  # fmt: skip
op("FusedBatchNormV3", "x: T, scale: U, offset: U, mean: U, variance: U -> y: T, batch_mean: U, batch_variance: U, "
    "reserve_space_1: U, reserve_space_2: U, reserve_space_3: U", "T: {half, bfloat16, float}", "U: {bfloat16, float}",
    "epsilon: float = 0.0001", "exponential_avg_factor: float = 1.0",
    "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'", "is_training: bool = true",
    shape=fused_batch_norm_shape,
    doc="Normalise a batch, with statistics of another type and space reserved for the gradient.",
)  # fmt: skip
op("LRN", "input: T -> output: T", "depth_radius: int = 5", "bias: float = 1.0", "alpha: float = 1.0",
    "beta: float = 0.5", "T: {half, bfloat16, float} = DT_FLOAT", shape=unchanged_shape_with_rank(4),
    doc="Divide by the local response of neighbouring channels.",
)  # fmt: skip
op("LRNGrad", "input_grads: T, input_image: T, output_image: T -> output: T", "depth_radius: int = 5",
    "bias: float = 1.0", "alpha: float = 1.0", "beta: float = 0.5", "T: {half, bfloat16, float} = DT_FLOAT",
    shape=_lrn_grad_shape, doc="Compute the gradient of LRN.",
)  # fmt: skip
op("_FusedBatchNormEx",
    "x: T, scale: U, offset: U, mean: U, variance: U, side_input: num_side_inputs * T -> y: T, batch_mean: U, "
    "batch_variance: U, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U", "T: {half, float, bfloat16}",
    "U: {float}", "epsilon: float = 0.0001", "exponential_avg_factor: float = 1.0", "num_side_inputs: int >= 0 = 0",
    "activation_mode: string = 'Identity'", "data_format: {'NHWC', 'NCHW'} = 'NHWC'", "is_training: bool = true",
    shape=fused_batch_norm_shape, doc="Normalise a batch, add, and apply an activation.",
)  # fmt: skip
