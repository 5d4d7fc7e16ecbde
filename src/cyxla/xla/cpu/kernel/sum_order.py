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
#: Approximate length of the blocks of longer rows.
BLOCK_LENGTH: Final = 1024
#: Columns whose accumulators fit L1 with a row of the operand.
COLUMN_BLOCK: Final = 1024
#: Groups of this many steps over rows have accumulators of their own in sums along columns.
GROUP_STEPS: Final = 64
#: Rows of a step of a sum along columns whose elements are cheap: the first of these that divides the number of rows.
ROW_STEPS: Final = (8, 4)


def block_length(extent: int) -> int:
    """Return the block length for a long loop: a divisor of its extent, if there is one of suitable size."""
    divisors = [d for d in range(256, MAX_UNBLOCKED_ROW + 1) if extent % d == 0]
    preferred = [d for d in divisors if d % 64 == 0] or [d for d in divisors if d % 16 == 0] or divisors
    return min(preferred, key=lambda d: (abs(d - BLOCK_LENGTH), d), default=BLOCK_LENGTH)
