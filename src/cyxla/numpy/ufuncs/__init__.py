"""NumPy's universal functions: how each is written in HLO, their calls, their methods."""
