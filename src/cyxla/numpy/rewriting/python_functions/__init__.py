"""Substitutes for functions of Python itself, which take traced numbers."""
