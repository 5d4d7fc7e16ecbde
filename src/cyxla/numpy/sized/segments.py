"""Segments and windows of arrays of run-time size, and functions that write to their argument."""
