"""Substitutes for functions of NumPy that do not dispatch, in place while a function is traced."""
