"""XLA kernels, which emit the HLO of ops; each module is named like that of the declarations in `core.ops`."""
