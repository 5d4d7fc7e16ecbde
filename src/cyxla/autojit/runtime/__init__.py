"""Compiling clusters and whole graphs as they run: programs, their cache, kernels and devices."""
