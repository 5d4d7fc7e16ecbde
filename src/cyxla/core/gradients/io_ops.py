"""File ops, which have no gradients."""

from cyxla.core.framework.gradient import no_gradient

no_gradient("MergeV2Checkpoints", "ReadFile", "RestoreV2", "SaveV2", "ShardedFilename")
no_gradient("DeleteIterator", "IteratorGetNext", "IteratorGetNextSync", "IteratorV2")
