"""Functions of numbers that are no ufuncs."""
