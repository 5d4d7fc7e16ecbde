"""Passes that expand an opcode into plainer ones, or bring it into the form that has kernels."""
