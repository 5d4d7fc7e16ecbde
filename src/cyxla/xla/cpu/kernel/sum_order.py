"""Limits that decide the order in which floats are added: a change of any of them changes the bits of results."""

from __future__ import annotations

from typing import Final

#: Estimated work of a part of a long reduction, in ns. It equals `machine.TASK_NS` and must not follow it: the size
#: of a task is free to change.
PART_NS: Final = 20_000.0
#: Parts of one reduction.
MAX_PARTS: Final = 64
#: Elements from which a reduced extent runs as a row, in lanes; shorter ones are reduced along columns.
MIN_ROW_LENGTH: Final = 16
#: Longest row that one loop runs over; longer rows are cut into blocks.
MAX_UNBLOCKED_ROW: Final = 4096
