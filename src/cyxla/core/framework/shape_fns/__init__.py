"""Shape functions that many ops share, and parts that others are made of."""
