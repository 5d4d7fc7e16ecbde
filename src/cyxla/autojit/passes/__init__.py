"""Passes over graphs, one file each: they choose clusters and put calls of compiled functions in their place."""
