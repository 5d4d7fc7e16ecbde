"""Kernels of reductions."""
