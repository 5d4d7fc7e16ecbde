"""Analyses of graphs that decide which nodes may be compiled together."""
