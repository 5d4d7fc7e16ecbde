"""NumPy's functions on traced arrays, in files by subject."""
