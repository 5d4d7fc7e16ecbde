"""Trip counts of loops over arrays of which a leading part alone matters, whose size is known at run time."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from math import prod

from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.loops.index_map import Atom
from cyxla.xla.cpu.loops.iteration_boxes import Region
from cyxla.xla.cpu.loops.loop_ir import Reads

LIVE_BLOCK = 256  # iterations of an innermost loop that are all run if the first of them matters


class SizeReads:
    """Sizes that a kernel reads after its other arrays.

    Parameters
    ----------
    first : int
        Number of arrays before them.
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self._slots: dict[Value, int] = {}

    def slot(self, value: Value) -> int:
        """Return the index of a size among the kernel's reads, appended if it is new."""
        return self._slots.setdefault(value, self.first + len(self._slots))

    @property
    def values(self) -> tuple[Value, ...]:
        """Sizes in the order of their slots."""
        return tuple(self._slots)


def size_text(sizes: Sequence[Value], reads: Reads | SizeReads) -> str:
    """Return the C of the greatest of some sizes, which the kernel reads from its ``bufs``."""
    texts = [f"cyx_size_{v.shape.dtype}(bufs[{reads.slot(v)}])" for v in sizes]
    text = texts[0]
    for other in texts[1:]:
        text = f"cyx_larger_size({text}, {other})"
    return text


def live_count(sizes: Sequence[Value], reads: Reads | SizeReads, count: int, rest: int = 1) -> str:
    """Return the C of the number of elements below some sizes, of `count` times `rest`."""
    text = f"cyx_live({size_text(sizes, reads)}, {count})"
    return f"{text} * {rest}" if rest > 1 else text


def live_trips(
    region: Region, loops: Sequence[Atom], live: Mapping[int, Sequence[Value]], reads: Reads
) -> dict[Atom, str]:
    """Return the C of the trip counts of the loops of a region that run over live elements alone.

    Parameters
    ----------
    region : Region
        Region of the iteration space.
    loops : sequence of Atom
        Loops of the region.
    live : mapping of int to sequence of Value
        Sizes by dimension of the iteration space.
    reads : Reads
        Arrays that the kernel reads; the sizes are added.
    """
    trips, position = {}, 0
    for d, ((low, _), split) in enumerate(zip(region.bounds, region.loops(), strict=True)):
        if d in live:
            step = region.step(d) * prod(split[1:])
            trips[loops[position]] = (
                f"cyx_live_steps({size_text(live[d], reads)}, {low}, {step}, {split[0]})"
                if low or step > 1
                else live_count(live[d], reads, split[0])
            )
        position += len(split)
    return trips


def collapsed_trips(
    loops: Sequence[tuple[Atom, int]], dropped: Container[Atom], trips: Mapping[Atom, str]
) -> dict[Atom, str]:
    """Return the C of the trip counts of loops after neighbours are collapsed, of which the first is live."""
    collapsed, run = {}, []
    for atom, extent in loops:
        if extent == 1:
            continue
        run.append((atom, extent))
        if atom in dropped:
            continue
        first, others = run[0][0], prod(n for _, n in run[1:])
        if first in trips:
            collapsed[atom] = trips[first] + (f" * {others}" if others > 1 else "")
        run = []
    return collapsed
