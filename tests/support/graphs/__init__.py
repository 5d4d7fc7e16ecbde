"""Graphs of ops: random ones, samples of every op, sessions, and runs of kernels."""
