"""Graph passes, one file each: they choose clusters and replace them by calls of compiled functions."""
