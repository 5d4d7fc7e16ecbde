"""Eager kernels, in folders and modules named as in `core.ops`; `lib` holds what several of them share."""
