"""Writing C: scalar expressions, the prelude, outlined functions, and the processor that it is written for."""
