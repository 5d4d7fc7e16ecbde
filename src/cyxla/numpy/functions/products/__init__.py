"""Products of vectors, matrices and tensors: dot, tensordot, einsum."""
