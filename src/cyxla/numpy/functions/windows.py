"""Window functions, convolutions."""
