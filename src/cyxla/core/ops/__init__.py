"""Declarations of ops and their shape functions, in a folder for each topic; see `cyxla.core.catalogue`."""
