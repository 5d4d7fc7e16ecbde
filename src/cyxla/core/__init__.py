"""The framework wing: ops, kernels, graphs and running them; it knows nothing of HLO."""
