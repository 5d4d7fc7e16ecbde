"""Helpers of kernels: arithmetic, random numbers, text, and values that kernels pass to each other."""
