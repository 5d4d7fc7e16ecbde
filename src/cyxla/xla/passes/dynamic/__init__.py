"""Bounded dynamic dimensions as padded arrays with their sizes; one module for each family of opcodes."""
