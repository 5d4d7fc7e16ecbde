"""Fused ops: their forms in graphs, matched and written out."""
