"""Helpers of kernels: arithmetic, random numbers, text, and values that kernels hand to each other."""
