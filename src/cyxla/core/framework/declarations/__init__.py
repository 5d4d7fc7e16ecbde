"""Declarations of ops: their grammar, their messages, and the registry that holds them."""
