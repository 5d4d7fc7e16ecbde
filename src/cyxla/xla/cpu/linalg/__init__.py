"""Triangular solves and factorisations in blocks."""
