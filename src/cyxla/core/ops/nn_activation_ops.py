"""Activations and their gradients."""

from cyxla.core.framework.op import op

op("Elu", "features: T -> activations: T", "T: {half, bfloat16, float, double}", shape=None)
op("EluGrad", "gradients: T, outputs: T -> backprops: T", "T: {half, bfloat16, float, double}", shape=None)
op("LeakyRelu", "features: T -> activations: T", "alpha: float = 0.2", "T: {half, bfloat16, float, double} = DT_FLOAT",
    shape=None,
)  # fmt: skip
op("LeakyReluGrad", "gradients: T, features: T -> backprops: T", "alpha: float = 0.2",
    "T: {half, bfloat16, float, double} = DT_FLOAT", shape=None,
)  # fmt: skip
op("LogSoftmax", "logits: T -> logsoftmax: T", "T: {half, bfloat16, float, double}", shape=None)
op("Relu", "features: T -> activations: T", "T: {realnumbertype, qint8}", shape=None)
op("Relu6", "features: T -> activations: T", "T: realnumbertype", shape=None)
op("Relu6Grad", "gradients: T, features: T -> backprops: T", "T: realnumbertype", shape=None)
op("ReluGrad", "gradients: T, features: T -> backprops: T", "T: realnumbertype", shape=None)
op("Selu", "features: T -> activations: T", "T: {half, bfloat16, float, double}", shape=None)
op("SeluGrad", "gradients: T, outputs: T -> backprops: T", "T: {half, bfloat16, float, double}", shape=None)
op("Softmax", "logits: T -> softmax: T", "T: {half, bfloat16, float, double}", shape=None)
op("Softplus", "features: T -> activations: T", "T: {half, bfloat16, float, double}", shape=None)
op("SoftplusGrad", "gradients: T, features: T -> backprops: T", "T: {half, bfloat16, float, double}", shape=None)
op("Softsign", "features: T -> activations: T", "T: {half, bfloat16, float, double}", shape=None)
op("SoftsignGrad", "gradients: T, features: T -> backprops: T", "T: {half, bfloat16, float, double}", shape=None)
