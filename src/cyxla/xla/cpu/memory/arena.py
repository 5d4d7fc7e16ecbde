"""Offsets of temporaries in the arena: temporaries that are live at once do not overlap."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.records import dataclass
from cyxla.xla.cpu.kernel import machine

ALIGN = machine.LINE_BYTES
GUARD = 64  # unused bytes after a temporary, for the address sanitizer
#: Number of temporaries up to which a second order is tried; the smaller arena is taken.
MAX_BEST_FIT = 400


@dataclass
class Temporary:
    """Bytes with a live range.

    Attributes
    ----------
    nbytes : int
        Size in bytes.
    start, end : int
        First and last moment of the live range, both inclusive.
    offset : int
        Offset in the arena, the result of `assign_offsets`.
    """

    nbytes: int
    start: int
    end: int
    offset: int = 0


def assign_offsets(temporaries: Sequence[Temporary]) -> int:
    """Assign an offset, a multiple of `ALIGN`, to every temporary; return the size of the arena in bytes."""
    by_start = sorted(temporaries, key=lambda t: (t.start, -t.nbytes))
    total = _by_start(by_start)
    if len(temporaries) > MAX_BEST_FIT:
        return total
    offsets = [t.offset for t in by_start]
    by_size = sorted(by_start, key=lambda t: -t.nbytes)
    if _best_fit(by_size) <= total:
        return max((t.offset + _round_up(t.nbytes) for t in by_start), default=0)
    for t, offset in zip(by_start, offsets, strict=True):
        t.offset = offset
    return total


def assign_guarded_offsets(temporaries: Sequence[Temporary]) -> int:
    """Assign offsets without sharing memory, with `GUARD` unused bytes after each; return the size of the arena."""
    total = 0
    for t in temporaries:
        t.offset = total
        total += _round_up(t.nbytes) + GUARD
    return total


def _round_up(nbytes: int) -> int:
    return -(-nbytes // ALIGN) * ALIGN


def _by_start(temporaries: Sequence[Temporary]) -> int:
    """Assign offsets in order of start, each in the smallest gap between the live ones; return the size."""
    total = 0
    active: list[Temporary] = []  # by offset
    for t in temporaries:
        active = [a for a in active if a.end >= t.start]
        offset = _gap(active, _round_up(t.nbytes))
        t.offset = offset
        total = max(total, offset + _round_up(t.nbytes))
        active.insert(_position(active, offset), t)
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
    """Return the offset of the smallest gap of at least `size`, or the end; `active` is sorted by offset."""
    best, best_size, end = -1, 0, 0
    for a in active:
        gap = a.offset - end
        if gap >= size and (best < 0 or gap < best_size):
            best, best_size = end, gap
        end = max(end, a.offset + _round_up(a.nbytes))
    return best if best >= 0 else end


def _best_fit(temporaries: Sequence[Temporary]) -> int:
    """Assign offsets in the given order, each in the smallest gap between those live with it; return the size."""
    total = 0
    placed: list[Temporary] = []  # by offset
    for t in temporaries:
        overlapping = [p for p in placed if p.start <= t.end and t.start <= p.end]
        t.offset = _gap(overlapping, _round_up(t.nbytes))
        total = max(total, t.offset + _round_up(t.nbytes))
        placed.insert(_position(placed, t.offset), t)
    return total
