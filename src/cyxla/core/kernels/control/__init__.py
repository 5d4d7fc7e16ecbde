"""Kernels of ops for branches, loops and functions."""
