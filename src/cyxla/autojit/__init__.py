"""Compiling graphs while they run: whole graphs, or the clusters that can be compiled."""
