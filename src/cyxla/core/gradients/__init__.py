"""Gradient functions of ops, in folders and modules named as in `cyxla.core.ops`."""
