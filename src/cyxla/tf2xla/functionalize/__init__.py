"""Conditionals and loops of Switch, Merge and frames, rewritten as nodes that call functions."""
