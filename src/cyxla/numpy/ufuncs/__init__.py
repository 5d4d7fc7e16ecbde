"""NumPy's universal functions on traced arrays: their loops in HLO and their calls."""
