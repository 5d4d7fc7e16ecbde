"""Queues and barriers: resources that pass elements between steps."""
