"""Helpers of the tests: programs and graphs to try, samples, comparisons, runners."""
