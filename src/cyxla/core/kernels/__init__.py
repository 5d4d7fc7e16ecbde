"""Eager kernels, in files named as those of the declarations."""
