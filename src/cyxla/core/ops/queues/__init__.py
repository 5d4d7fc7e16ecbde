"""Declarations of queues and barriers."""
