"""Helpers of the tests: random programs and graphs, sample inputs, comparisons, runners."""
