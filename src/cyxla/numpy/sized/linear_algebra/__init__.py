"""Linear algebra of matrices of run-time size: of padded ones, whose padding leaves the results as they are."""

from cyxla.numpy.sized.linear_algebra import decompositions, equations, fits, norms, singular_values

__all__ = ["decompositions", "equations", "fits", "norms", "singular_values"]
