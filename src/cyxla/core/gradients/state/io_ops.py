"""File ops, which have no gradients."""

from cyxla.core.framework.gradient import no_gradient

no_gradient(
    "MergeV2Checkpoints", "ReadFile", "Restore", "RestoreSlice", "RestoreV2", "Save", "SaveSlices", "SaveV2",
    "ShardedFilename",
)  # fmt: skip
no_gradient("DeleteIterator", "IteratorGetNext", "IteratorGetNextSync", "IteratorV2")
