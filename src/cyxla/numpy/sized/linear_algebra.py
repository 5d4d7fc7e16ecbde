"""Decompositions and solutions of matrices of run-time size."""
