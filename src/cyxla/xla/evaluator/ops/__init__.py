"""Functions that evaluate opcodes, by family; importing a family registers them."""
