"""Gradients of element-wise functions, products, reductions, linear algebra and transforms."""
