"""Passes that expand an opcode into simpler ones, or rewrite it into a form that has kernels."""
