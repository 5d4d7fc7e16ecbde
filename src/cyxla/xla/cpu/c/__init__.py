"""Generation of C: scalar expressions, the prelude, kernel headers, outlined functions, instruction-set levels."""
