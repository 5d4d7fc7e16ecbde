"""Reductions, windows and scans."""
