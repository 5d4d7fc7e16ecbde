"""Specialisation of a program for constant arguments, and rewrites of products with known weights."""
