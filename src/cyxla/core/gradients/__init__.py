"""Gradient functions of ops, in modules named as in `cyxla.core.ops`; `math` and `nn` are folders."""
