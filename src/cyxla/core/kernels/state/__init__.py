"""Kernels of ops for variables, files and checkpoints."""
