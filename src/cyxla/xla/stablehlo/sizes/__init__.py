"""Sizes that depend on the values of a program's arguments."""
