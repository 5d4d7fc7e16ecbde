"""Kernels and their arrays: what emitters hand to the planner, what a kernel costs, and calls of prebuilt functions."""
