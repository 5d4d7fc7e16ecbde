"""Functions of the user's own, in Python or C, inside of traced functions."""
