"""Derivatives, to be."""
