"""Indexing of traced arrays: what an index means, reading, writing."""
