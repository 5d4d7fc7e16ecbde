"""Declarations of ops for HLO instructions and compiled clusters."""
