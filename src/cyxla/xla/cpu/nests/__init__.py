"""Loops that run as one kernel: nested loops and branches, with their arrays in memory."""
