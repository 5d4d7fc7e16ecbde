"""Generation of C: scalar expressions, the prelude, outlined functions, instruction-set levels."""
