"""Execution of graphs: devices, placement, executors, sessions, and eager ops."""
