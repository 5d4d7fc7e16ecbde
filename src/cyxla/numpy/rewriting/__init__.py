"""Rewriting of Python functions, so that their loops and branches on traced values become those of programs."""
