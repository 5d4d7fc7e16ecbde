"""XLA kernels of ops for the session, Python functions, checks and printing."""
