"""Graphs of ops: building, reading, writing, checking and differentiating them."""
