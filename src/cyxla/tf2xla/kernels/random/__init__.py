"""XLA kernels of ops for random numbers."""
