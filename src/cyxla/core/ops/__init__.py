"""Declarations of ops and their shape functions, by family; see `cyxla.core.catalogue`."""
