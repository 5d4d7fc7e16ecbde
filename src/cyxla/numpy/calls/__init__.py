"""Calls of compiled functions: signatures, compiled entries and their results."""
