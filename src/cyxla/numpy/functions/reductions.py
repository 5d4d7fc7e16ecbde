"""Sums, extremes and the like along axes."""
