"""Compositions of HLO instructions for all front ends: constants, broadcasting, reductions, special functions."""
