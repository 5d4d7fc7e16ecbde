"""Gradient functions of ops, in files named as in `cyxla.core.ops`; those of mathematics and networks in folders."""
