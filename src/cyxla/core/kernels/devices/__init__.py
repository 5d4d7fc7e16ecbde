"""Kernels of ops for collectives and transfers between devices."""
