"""Files and checkpoints."""

from cyxla.core.framework.op import op

op("MergeV2Checkpoints", "checkpoint_prefixes: string, destination_prefix: string ->", "delete_old_dirs: bool = true",
    "allow_missing_files: bool = false", stateful=True, shape=None,
)  # fmt: skip
op("ReadFile", "filename: string -> contents: string", shape=None)
op("Restore", "file_pattern: string, tensor_name: string -> tensor: dt", "dt: type", "preferred_shard: int = -1",
    stateful=True, shape=None,
)  # fmt: skip
op("RestoreV2", "prefix: string, tensor_names: string, shape_and_slices: string -> tensors: dtypes",
    "dtypes: list(type)", stateful=True, shape=None,
)  # fmt: skip
op("Save", "filename: string, tensor_names: string, data: T ->", "T: list(type)", stateful=True, shape=None)
op("SaveV2", "prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes ->", "dtypes: list(type)",
    stateful=True, shape=None,
)  # fmt: skip
op("ShardedFilename", "basename: string, shard: int32, num_shards: int32 -> filename: string", shape=None)
