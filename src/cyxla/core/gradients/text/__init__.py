"""Gradients of ops for strings."""
