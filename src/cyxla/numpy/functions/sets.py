"""Sets of elements."""
