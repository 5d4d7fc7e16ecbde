"""Operators, methods and protocols of traced arrays."""
