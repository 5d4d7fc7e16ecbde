"""numpy.linalg."""
