"""Planner: fusion, and the order in which kernels, loops and branches run."""
