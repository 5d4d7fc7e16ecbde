"""Gradients of ops for variables, files and checkpoints."""
