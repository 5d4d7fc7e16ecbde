"""Losses."""

from cyxla.core.framework.op import op

op("SoftmaxCrossEntropyWithLogits", "features: T, labels: T -> loss: T, backprop: T",
    "T: {half, bfloat16, float, double}", shape=None,
)  # fmt: skip
op("SparseSoftmaxCrossEntropyWithLogits", "features: T, labels: Tlabels -> loss: T, backprop: T",
    "T: {half, bfloat16, float, double}", "Tlabels: {int32, int64} = DT_INT64", shape=None,
)  # fmt: skip
