"""Files and checkpoints."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR, UNKNOWN, TensorShape


def _scalars_shape(c: InferenceContext) -> None:
    """Check that all inputs are scalars, and set a scalar output."""
    for i in range(c.num_inputs):
        c.with_rank(c.input(i), 0)
    c.set_output(0, SCALAR)


def _merge_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 1)
    c.with_rank(c.input(1), 0)


def _restore_shape(c: InferenceContext) -> None:
    """Check the inputs; shapes are unknown until the file is read."""
    c.with_rank(c.input(0), 0)
    c.with_rank(c.input(1), 0)


def _restore_all_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 0)
    names = c.merge(c.with_rank(c.input(1), 1), c.with_rank(c.input(2), 1))
    c.merge_dim(names[0], c.num_outputs)


def _restore_slice_shape(c: InferenceContext) -> None:
    """Set the shape of the slice, if its text is known."""
    for i in range(3):
        c.with_rank(c.input(i), 0)
    text = c.input_tensor(2)
    if text is not None:
        c.set_output(0, _slice_shape(bytes(text.item()).decode("utf-8", "surrogateescape")))


def _slice_shape(text: str) -> TensorShape:
    """Return the shape of a slice such as ``"4 3 0,2:-"``; unknown for an empty text or one that is malformed."""
    *sizes, bounds = text.split(" ")
    parts = bounds.split(":")
    if not text or len(parts) != len(sizes):
        return UNKNOWN
    try:
        pairs = zip(sizes, parts, strict=True)
        return TensorShape(int(size) if part == "-" else int(part.split(",")[1]) for size, part in pairs)
    except (ValueError, IndexError):
        return UNKNOWN  # the kernel says what is wrong


def _save_slices_shape(c: InferenceContext) -> None:
    """Check that there is one name and one slice per tensor."""
    c.with_rank(c.input(0), 0)
    for i in (1, 2):
        c.merge_dim(c.with_rank(c.input(i), 1)[0], c.num_inputs - 3)


def _save_shape(c: InferenceContext) -> None:
    """Check that there is one name per tensor."""
    c.with_rank(c.input(0), 0)
    c.merge_dim(c.with_rank(c.input(1), 1)[0], c.num_inputs - 2)


def _save_all_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 0)
    names = c.merge(c.with_rank(c.input(1), 1), c.with_rank(c.input(2), 1))
    c.merge_dim(names[0], c.num_inputs - 3)


op("MergeV2Checkpoints", "checkpoint_prefixes: string, destination_prefix: string ->", "delete_old_dirs: bool = true",
    "allow_missing_files: bool = false", stateful=True, shape=_merge_shape, doc="Merge several checkpoints into one.",
)  # fmt: skip
op("ReadFile", "filename: string -> contents: string", shape=_scalars_shape, doc="Read a whole file.")
op("Restore", "file_pattern: string, tensor_name: string -> tensor: dt", "dt: type", "preferred_shard: int = -1",
    stateful=True, shape=_restore_shape, doc="Read a tensor from a checkpoint of the old format.",
)  # fmt: skip
op("RestoreSlice", "file_pattern: string, tensor_name: string, shape_and_slice: string -> tensor: dt", "dt: type",
    "preferred_shard: int = -1", stateful=True, shape=_restore_slice_shape,
    doc="Read a slice of a tensor from a checkpoint of the old format.",
)  # fmt: skip
op("RestoreV2", "prefix: string, tensor_names: string, shape_and_slices: string -> tensors: dtypes",
    "dtypes: list(type)", stateful=True, shape=_restore_all_shape,
    doc="Read tensors, or slices of them, from a checkpoint.",
)  # fmt: skip
op("Save", "filename: string, tensor_names: string, data: T ->", "T: list(type)", stateful=True, shape=_save_shape,
    doc="Write tensors to a checkpoint of the old format.",
)  # fmt: skip
op("SaveSlices", "filename: string, tensor_names: string, shapes_and_slices: string, data: T ->", "T: list(type)",
    stateful=True, shape=_save_slices_shape, doc="Write slices of tensors to a checkpoint of the old format.",
)  # fmt: skip
op("SaveV2", "prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes ->", "dtypes: list(type)",
    stateful=True, shape=_save_all_shape, doc="Write tensors, or slices of them, to a checkpoint.",
)  # fmt: skip
op("ShardedFilename", "basename: string, shard: int32, num_shards: int32 -> filename: string", shape=_scalars_shape,
    doc="Return the name of one file of a sharded set.",
)  # fmt: skip
