"""Shapes, joins, splits, repeats."""
