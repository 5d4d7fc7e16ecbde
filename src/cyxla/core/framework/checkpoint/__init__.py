"""Checkpoints: files of sorted keys, their checksums, and the tensors in them."""
