"""Shape arithmetic of ops, shared by the kernels that compute and those that compile."""
