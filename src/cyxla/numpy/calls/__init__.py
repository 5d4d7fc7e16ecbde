"""Calls of compiled functions: signatures, what is compiled for each, and how results come out."""
