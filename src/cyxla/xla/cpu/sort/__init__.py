"""Sorts and topk: keys of elements, records, and the kernels that put them in order."""
