"""Eager kernels; each module is named like that of the declarations in `core.ops`."""
