"""Passes that make a program smaller, and `simplification`, which repeats most of them to a fixed point."""
