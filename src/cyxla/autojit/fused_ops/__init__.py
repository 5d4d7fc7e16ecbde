"""Fused ops: pattern matching of their forms in graphs, and expansion into plain nodes."""
