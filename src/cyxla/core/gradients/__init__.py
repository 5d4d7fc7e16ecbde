"""Gradient functions of ops, in files named as in `cyxla.core.ops`."""
