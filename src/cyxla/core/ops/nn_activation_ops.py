"""Activations and their gradients."""

from cyxla.core.framework.common_shape_fns import (
    merge_both_inputs_shape,
    unchanged_shape,
    unchanged_shape_with_rank_at_least,
)
from cyxla.core.framework.op import op

op("Elu", "features: T -> activations: T", "T: {half, bfloat16, float, double}", shape=unchanged_shape)
op("EluGrad", "gradients: T, outputs: T -> backprops: T", "T: {half, bfloat16, float, double}",
    shape=merge_both_inputs_shape,
)  # fmt: skip
op("LeakyRelu", "features: T -> activations: T", "alpha: float = 0.2", "T: {half, bfloat16, float, double} = DT_FLOAT",
    shape=unchanged_shape,
)  # fmt: skip
op("LeakyReluGrad", "gradients: T, features: T -> backprops: T", "alpha: float = 0.2",
    "T: {half, bfloat16, float, double} = DT_FLOAT", shape=merge_both_inputs_shape,
)  # fmt: skip
op("LogSoftmax", "logits: T -> logsoftmax: T", "T: {half, bfloat16, float, double}",
    shape=unchanged_shape_with_rank_at_least(1),
)  # fmt: skip
op("Relu", "features: T -> activations: T", "T: {realnumbertype, qint8}", shape=unchanged_shape)
op("Relu6", "features: T -> activations: T", "T: realnumbertype", shape=unchanged_shape)
op("Relu6Grad", "gradients: T, features: T -> backprops: T", "T: realnumbertype", shape=merge_both_inputs_shape)
op("ReluGrad", "gradients: T, features: T -> backprops: T", "T: realnumbertype", shape=merge_both_inputs_shape)
op("Selu", "features: T -> activations: T", "T: {half, bfloat16, float, double}", shape=unchanged_shape)
op("SeluGrad", "gradients: T, outputs: T -> backprops: T", "T: {half, bfloat16, float, double}",
    shape=merge_both_inputs_shape,
)  # fmt: skip
op("Softmax", "logits: T -> softmax: T", "T: {half, bfloat16, float, double}",
    shape=unchanged_shape_with_rank_at_least(1),
)  # fmt: skip
op("Softplus", "features: T -> activations: T", "T: {half, bfloat16, float, double}", shape=unchanged_shape)
op("SoftplusGrad", "gradients: T, features: T -> backprops: T", "T: {half, bfloat16, float, double}",
    shape=merge_both_inputs_shape,
)  # fmt: skip
op("Softsign", "features: T -> activations: T", "T: {half, bfloat16, float, double}", shape=unchanged_shape)
op("SoftsignGrad", "gradients: T, features: T -> backprops: T", "T: {half, bfloat16, float, double}",
    shape=merge_both_inputs_shape,
)  # fmt: skip
