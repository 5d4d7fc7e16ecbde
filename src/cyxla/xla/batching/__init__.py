"""Batching: a program for one element, rewritten for all elements of a batch at once.

Values that differ by element get the batch as their first dimension; the others are computed once. A rule for each
opcode stands in `table`; `flags` finds the values of loops and branches that differ.
"""

from cyxla.xla.batching.batcher import Batcher
from cyxla.xla.batching.values import Value

__all__ = ["Batcher", "Value"]
