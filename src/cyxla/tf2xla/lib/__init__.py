"""Helpers of XLA kernels: HLO for einsum, random bits, dynamic sizes, tensor lists and more."""
