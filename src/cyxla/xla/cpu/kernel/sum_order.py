"""Limits that decide the order in which floats are added: a change of any of them changes the bits of results."""

from __future__ import annotations

from typing import Final

#: Estimated work of a part of a long reduction, in ns; it is not the size of a task, which may change.
PART_NS: Final = 20_000.0
#: Parts of one reduction.
MAX_PARTS: Final = 64
