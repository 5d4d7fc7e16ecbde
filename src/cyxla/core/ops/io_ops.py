"""Files and checkpoints."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR


def _scalars_shape(c: InferenceContext) -> None:
    """All inputs are scalars, and so is the output."""
    for i in range(c.num_inputs):
        c.with_rank(c.input(i), 0)
    c.set_output(0, SCALAR)


def _merge_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 1)
    c.with_rank(c.input(1), 0)


def _restore_shape(c: InferenceContext) -> None:
    """What the file holds is known only when it is read."""
    c.with_rank(c.input(0), 0)
    c.with_rank(c.input(1), 0)


def _restore_all_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 0)
    names = c.merge(c.with_rank(c.input(1), 1), c.with_rank(c.input(2), 1))
    c.merge_dim(names[0], c.num_outputs)


def _save_shape(c: InferenceContext) -> None:
    """A name for each tensor."""
    c.with_rank(c.input(0), 0)
    c.merge_dim(c.with_rank(c.input(1), 1)[0], c.num_inputs - 2)


def _save_all_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 0)
    names = c.merge(c.with_rank(c.input(1), 1), c.with_rank(c.input(2), 1))
    c.merge_dim(names[0], c.num_inputs - 3)


op("MergeV2Checkpoints", "checkpoint_prefixes: string, destination_prefix: string ->", "delete_old_dirs: bool = true",
    "allow_missing_files: bool = false", stateful=True, shape=_merge_shape, doc="Makes one checkpoint of several.",
)  # fmt: skip
op("ReadFile", "filename: string -> contents: string", shape=_scalars_shape, doc="The content of a file.")
op("Restore", "file_pattern: string, tensor_name: string -> tensor: dt", "dt: type", "preferred_shard: int = -1",
    stateful=True, shape=_restore_shape, doc="A tensor from a checkpoint of the old format.",
)  # fmt: skip
op("RestoreV2", "prefix: string, tensor_names: string, shape_and_slices: string -> tensors: dtypes",
    "dtypes: list(type)", stateful=True, shape=_restore_all_shape, doc="Tensors, or slices of them, from a checkpoint.",
)  # fmt: skip
op("Save", "filename: string, tensor_names: string, data: T ->", "T: list(type)", stateful=True, shape=_save_shape,
    doc="Writes tensors to a checkpoint of the old format.",
)  # fmt: skip
op("SaveV2", "prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes ->", "dtypes: list(type)",
    stateful=True, shape=_save_all_shape, doc="Writes tensors, or slices of them, to a checkpoint.",
)  # fmt: skip
op("ShardedFilename", "basename: string, shard: int32, num_shards: int32 -> filename: string", shape=_scalars_shape,
    doc="The name of one file of several.",
)  # fmt: skip
