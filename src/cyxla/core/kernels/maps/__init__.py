"""Kernels of maps of tensors."""
