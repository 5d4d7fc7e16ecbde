"""Connectionist temporal classification."""

from cyxla.core.framework.op import op

op("CTCLoss", "inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32 -> loss: T, gradient: T",
    "preprocess_collapse_repeated: bool = false", "ctc_merge_repeated: bool = true",
    "ignore_longer_outputs_than_inputs: bool = false", "T: {float, double} = DT_FLOAT", shape=None,
)  # fmt: skip
