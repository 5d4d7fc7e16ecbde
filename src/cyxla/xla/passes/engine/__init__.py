"""Machinery of passes: patterns, the rewriting engine, pipelines, copies, and the writer of new instructions."""
