"""XLA kernels of ops for branches, loops and functions."""
