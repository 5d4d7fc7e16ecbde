"""numpy.linalg, in files by subject."""

from cyxla.numpy.functions import equations, factorisations, norms

__all__ = ["equations", "factorisations", "norms"]
