"""Rewriting of Switch, Merge and loop frames to nodes that call functions."""
