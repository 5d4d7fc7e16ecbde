"""Allocators of arrays, and the record of what a kernel allocates."""
