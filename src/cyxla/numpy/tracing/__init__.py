"""Tracing: traced arrays, the HLO that is recorded from them, and the registry of NumPy's functions."""
