"""Fourier transforms of run-time length."""
