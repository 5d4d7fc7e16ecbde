"""Declarations of ops for strings."""
