"""Places temporaries in the arena so that no two that are live at once overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGN = 64
GUARD = 64  # bytes between temporaries that are kept apart
#: Up to this many temporaries a second order is tried, and the smaller block taken.
MAX_BEST_FIT = 400


@dataclass
class Temporary:
    """Some bytes needed from one moment to another, both inclusive.

    Attributes
    ----------
    nbytes : int
        How many.
    start, end : int
        First and last moment.
    offset : int
        Where they lie; the answer of `assign_offsets`.
    """

    nbytes: int
    start: int
    end: int
    offset: int = 0


def assign_offsets(temporaries: Sequence[Temporary]) -> int:
    """Give every temporary an offset, a multiple of `ALIGN`; returns the bytes needed in all."""
    by_start = sorted(temporaries, key=lambda t: (t.start, -t.nbytes))
    total = _by_start(by_start)
    if len(temporaries) > MAX_BEST_FIT:
        return total
    offsets = [t.offset for t in by_start]
    by_size = sorted(by_start, key=lambda t: -t.nbytes)
    if _best_fit(by_size) <= total:
        return max((t.offset + _rounded(t.nbytes) for t in by_start), default=0)
    for t, offset in zip(by_start, offsets, strict=True):
        t.offset = offset
    return total


def assign_guarded_offsets(temporaries: Sequence[Temporary]) -> int:
    """Likewise, but no two share memory, and there are bytes of nobody's after each."""
    total = 0
    for t in temporaries:
        t.offset = total
        total += _rounded(t.nbytes) + GUARD
    return total


def _rounded(nbytes: int) -> int:
    return -(-nbytes // ALIGN) * ALIGN


def _by_start(temporaries: Sequence[Temporary]) -> int:
    """Smallest gap that fits, among what is in use at the moment each one starts."""
    total = 0
    active: list[Temporary] = []  # by offset
    for t in temporaries:
        active = [a for a in active if a.end >= t.start]
        at = _gap(active, _rounded(t.nbytes))
        t.offset = at
        total = max(total, at + _rounded(t.nbytes))
        active.insert(_position(active, at), t)
    return total


def _position(active: Sequence[Temporary], offset: int) -> int:
    low, high = 0, len(active)
    while low < high:
        middle = (low + high) // 2
        if active[middle].offset < offset:
            low = middle + 1
        else:
            high = middle
    return low


def _gap(active: Sequence[Temporary], size: int) -> int:
    """The smallest gap of at least `size` between what is in use, else the end of it; `active` is sorted by offset."""
    best, best_size, at = -1, 0, 0
    for a in active:
        gap = a.offset - at
        if gap >= size and (best < 0 or gap < best_size):
            best, best_size = at, gap
        at = max(at, a.offset + _rounded(a.nbytes))
    return best if best >= 0 else at


def _best_fit(temporaries: Sequence[Temporary]) -> int:
    """One after the other, each in the smallest gap among the placed ones that it meets in time."""
    total = 0
    placed: list[Temporary] = []  # by offset
    for t in temporaries:
        meets = [p for p in placed if p.start <= t.end and t.start <= p.end]
        t.offset = _gap(meets, _rounded(t.nbytes))
        total = max(total, t.offset + _rounded(t.nbytes))
        placed.insert(_position(placed, t.offset), t)
    return total
