"""Kernels of operations across the devices of a process."""
