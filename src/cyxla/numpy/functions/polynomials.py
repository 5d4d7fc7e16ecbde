"""Polynomials."""
