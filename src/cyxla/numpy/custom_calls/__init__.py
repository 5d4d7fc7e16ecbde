"""User-defined functions, in Python or C, inside traced functions."""
