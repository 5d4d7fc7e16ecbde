"""Kernels of ops for random numbers."""
