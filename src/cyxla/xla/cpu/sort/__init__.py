"""Sorting and topk."""
