"""Activations and their gradients."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import (
    elementwise_shape,
    merge_both_inputs_shape,
    unchanged_shape_with_rank_at_least,
)

op("Elu", "features: T -> activations: T", "T: {half, bfloat16, float, double}", shape=elementwise_shape,
    doc="Return x, or exp(x) - 1 where x is negative.",
)  # fmt: skip
op("EluGrad", "gradients: T, outputs: T -> backprops: T", "T: {half, bfloat16, float, double}",
    shape=merge_both_inputs_shape, doc="Compute the gradient of Elu from its result.",
)  # fmt: skip
op("LeakyRelu", "features: T -> activations: T", "alpha: float = 0.2", "T: {half, bfloat16, float, double} = DT_FLOAT",
    shape=elementwise_shape, doc="Return x, or alpha * x where x is negative.",
)  # fmt: skip
op("LeakyReluGrad", "gradients: T, features: T -> backprops: T", "alpha: float = 0.2",
    "T: {half, bfloat16, float, double} = DT_FLOAT", shape=merge_both_inputs_shape,
    doc="Compute the gradient of LeakyRelu.",
)  # fmt: skip
op("LogSoftmax", "logits: T -> logsoftmax: T", "T: {half, bfloat16, float, double}",
    shape=unchanged_shape_with_rank_at_least(1), doc="Compute the logarithm of Softmax.",
)  # fmt: skip
op("Relu", "features: T -> activations: T", "T: {realnumbertype, qint8}", shape=elementwise_shape,
    doc="Return x, or 0 where x is negative.",
)  # fmt: skip
op("Relu6", "features: T -> activations: T", "T: realnumbertype", shape=elementwise_shape, doc="Clamp x to [0, 6].")
op("Relu6Grad", "gradients: T, features: T -> backprops: T", "T: realnumbertype", shape=merge_both_inputs_shape,
    doc="Compute the gradient of Relu6.",
)  # fmt: skip
op("ReluGrad", "gradients: T, features: T -> backprops: T", "T: realnumbertype", shape=merge_both_inputs_shape,
    doc="Compute the gradient of Relu.",
)  # fmt: skip
op("Selu", "features: T -> activations: T", "T: {half, bfloat16, float, double}", shape=elementwise_shape,
    doc="Compute the Elu scaled to preserve mean and variance.",
)  # fmt: skip
op("SeluGrad", "gradients: T, outputs: T -> backprops: T", "T: {half, bfloat16, float, double}",
    shape=merge_both_inputs_shape, doc="Compute the gradient of Selu from its result.",
)  # fmt: skip
op("Softmax", "logits: T -> softmax: T", "T: {half, bfloat16, float, double}",
    shape=unchanged_shape_with_rank_at_least(1),
    doc="Compute exponentials along the last dimension divided by their sum.",
)  # fmt: skip
op("Softplus", "features: T -> activations: T", "T: {half, bfloat16, float, double}", shape=elementwise_shape,
    doc="Compute log(1 + exp(x)).",
)  # fmt: skip
op("SoftplusGrad", "gradients: T, features: T -> backprops: T", "T: {half, bfloat16, float, double}",
    shape=merge_both_inputs_shape, doc="Compute the gradient of Softplus.",
)  # fmt: skip
op("Softsign", "features: T -> activations: T", "T: {half, bfloat16, float, double}", shape=elementwise_shape,
    doc="Compute x / (1 + |x|).",
)  # fmt: skip
op("SoftsignGrad", "gradients: T, features: T -> backprops: T", "T: {half, bfloat16, float, double}",
    shape=merge_both_inputs_shape, doc="Compute the gradient of Softsign.",
)  # fmt: skip
