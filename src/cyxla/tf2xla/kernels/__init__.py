"""XLA kernels, in files named as those of the declarations: each says which HLO its op becomes."""
