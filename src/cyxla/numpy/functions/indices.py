"""Functions of indices: take, put, where."""
