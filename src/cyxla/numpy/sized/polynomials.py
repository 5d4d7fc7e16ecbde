"""Polynomials, piecewise functions and vector products of arrays of run-time size."""
