"""Splitting a program for arguments that stay the same, and rewrites of products with known weights."""
