"""XLA kernels of ops for variables, files and checkpoints."""
