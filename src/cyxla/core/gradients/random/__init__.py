"""Gradients of ops for random numbers."""
