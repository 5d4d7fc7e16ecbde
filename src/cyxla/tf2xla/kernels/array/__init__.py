"""XLA kernels of ops for constants, shapes, slices, gathers and sparse tensors."""
