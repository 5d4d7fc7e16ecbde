"""Kernels of queues and barriers."""
