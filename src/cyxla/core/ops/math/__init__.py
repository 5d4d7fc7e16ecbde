"""Declarations of ops for element-wise functions, products, reductions, linear algebra and transforms."""
