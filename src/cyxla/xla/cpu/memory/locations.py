"""Locations of arrays in memory."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class MemoryKind(StrEnum):
    """Kinds of memory: buffers of a call, by number, and the arena, by offset."""

    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    ARENA = "arena"


class Location(NamedTuple):
    """Location in memory: the number of a buffer of the call, or an offset into the arena."""

    kind: MemoryKind
    at: int
