"""Declarations of ops for random numbers."""
