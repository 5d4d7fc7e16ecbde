"""NumPy's histograms and counts."""
