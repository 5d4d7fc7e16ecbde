"""Functions of NumPy: rows of tables, random modules of Python functions, and comparisons with plain calls."""
