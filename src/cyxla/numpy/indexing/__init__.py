"""Indexing of traced arrays: parsing of index expressions, reads and writes."""
