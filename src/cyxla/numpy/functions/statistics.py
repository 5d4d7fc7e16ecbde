"""Means, quantiles, histograms."""
