"""Functions of numpy.linalg on traced arrays: factorisations, systems of equations, norms."""
