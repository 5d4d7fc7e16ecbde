"""Truth of arrays, comparisons of whole arrays."""
