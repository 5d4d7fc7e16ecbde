"""Compilation of clusters and whole graphs at run time: programs, their cache, kernels and devices."""
