"""Connectionist temporal classification."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_inference import InferenceContext


def _ctc_loss_shape(c: InferenceContext) -> None:
    """Set one loss per sequence of the batch, and the gradient."""
    x, indices = c.with_rank(c.input(0), 3), c.with_rank(c.input(1), 2)
    values, lengths = c.with_rank(c.input(2), 1), c.with_rank(c.input(3), 1)
    c.merge_dim(indices[0], values[0])
    batch = c.merge_dim(x[1], lengths[0])
    c.set_output(0, (batch,))
    c.set_output(1, c.replace_dim(x, 1, batch))


op("CTCLoss", "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32 -> loss: T, gradient: T",
    "preprocess_collapse_repeated: bool = false", "ctc_merge_repeated: bool = true",
    "ignore_longer_outputs_than_inputs: bool = false", "T: {float, double} = DT_FLOAT", shape=_ctc_loss_shape,
    doc="Compute the connectionist temporal classification loss and its gradient.",
)  # fmt: skip
