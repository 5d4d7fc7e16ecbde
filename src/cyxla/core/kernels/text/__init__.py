"""Kernels of ops for strings."""
