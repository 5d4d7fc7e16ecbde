"""Arithmetic and functions of complex numbers, floats and integers on NumPy arrays, as HLO defines them."""
