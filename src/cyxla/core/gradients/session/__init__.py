"""Gradients of ops for the session, Python functions, checks and printing."""
