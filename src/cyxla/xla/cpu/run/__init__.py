"""Executables of platform cpu: signatures, bound arguments, calls of Python, profiles."""
