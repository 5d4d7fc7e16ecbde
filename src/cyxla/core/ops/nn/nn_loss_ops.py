"""Classification losses."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_inference import InferenceContext


def _loss_shape(c: InferenceContext) -> None:
    """Set one loss per row, and the gradient; features and labels broadcast."""
    shape = c.with_rank(c.broadcast(c.input(0), c.input(1)), 2)
    c.set_output(0, (shape[0],))
    c.set_output(1, shape)


def _sparse_loss_shape(c: InferenceContext) -> None:
    """Check that there is one label per row."""
    x, labels = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 1)
    rows = c.merge_dim(x[0], labels[0])
    c.set_output(0, (rows,))
    c.set_output(1, (rows, x[1]))


op("SoftmaxCrossEntropyWithLogits", "features: T, labels: T -> loss: T, backprop: T",
    "T: {half, bfloat16, float, double}", shape=_loss_shape,
    doc="Compute the cross entropy of Softmax and a distribution per row, and its gradient.",
)  # fmt: skip
op("SparseSoftmaxCrossEntropyWithLogits", "features: T, labels: Tlabels -> loss: T, backprop: T",
    "T: {half, bfloat16, float, double}", "Tlabels: {int32, int64} = DT_INT64", shape=_sparse_loss_shape,
    doc="Compute the cross entropy of Softmax and a class per row, and its gradient.",
)  # fmt: skip
