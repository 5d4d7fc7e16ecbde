"""Parts of kernels that compile: HLO for Einstein's sums, random bits, dynamic sizes, tensor lists and more."""
