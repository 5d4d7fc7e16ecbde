"""Kernels of checkpoints of version 1, and of files that hold constants."""
