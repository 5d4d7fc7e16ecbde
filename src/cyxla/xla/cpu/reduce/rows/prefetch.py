"""Prefetch of the next row, while the passes over this one compute.

A row is read from memory in its first pass alone; without this, memory would be idle in all others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.loops.hoisting import LoopNest, reachable
from cyxla.xla.cpu.loops.index_map import Atom
from cyxla.xla.cpu.loops.loop_ir import Node

_L2_BYTES = 1 << 19  # smaller arrays stay in the second cache
_MAX_PREFETCH_BYTES = 1 << 17  # more than that of a row would push out what was asked for first
RUN_LENGTH = 256  # elements of a loop between two requests: all of a row at once, and the queue to memory overflows
_MIN_DISTANCE_BYTES = 1 << 14  # main memory answers late: of short rows, several are on their way
_EARLY_FRACTION = 8  # the part of a row that is asked for at once: what memory delivers while the first pass computes
_LINE = 64


@dataclass(frozen=True)
class Runs:
    """A loop cut into runs: `count` of the same length, and a shorter one."""

    length: int
    count: int
    tail: int

    @staticmethod
    def of(trip: int, wanted: int = RUN_LENGTH) -> Runs:
        """Runs that leave no rest, if possible: the body of the loop would be there twice."""
        longest = 2 * wanted
        if trip <= longest:
            return Runs(trip, 1, 0)
        fitting = [n for n in range(64, longest + 1, 64) if trip % n == 0]
        length = min(fitting, key=lambda n: (abs(n - wanted), n), default=wanted)
        return Runs(length, trip // length, trip % length)


@dataclass(frozen=True)
class Prefetch:
    """Loads whose next row is asked for in one of the passes.

    Attributes
    ----------
    loads : tuple of Node
        What to read.
    row : Atom
        The loop over rows.
    rows : int
        How many rows ahead.
    """

    loads: tuple[Node, ...]
    row: Atom
    rows: int = 1

    @staticmethod
    def of(loads: Collection[Node], arrays: Sequence[Value], row: Atom, inner: tuple[Atom, int]) -> Prefetch | None:
        """Those of some loads that come from far away; None if nothing does, or too much."""
        atom, trip = inner
        far = {
            (n.data[0], n.data[1]): n
            for n in loads
            if n.data[1].coefficient(atom) in (1, -1)
            and n.data[1].coefficient(row)
            and arrays[n.data[0]].shape.nbytes > _L2_BYTES
        }
        nbytes = sum(n.dtype.itemsize * trip for n in far.values())
        if not far or nbytes > _MAX_PREFETCH_BYTES:
            return None
        uncached = sum(arrays[slot].shape.nbytes for slot in {slot for slot, _ in far}) > cost.STREAMING_BYTES
        return Prefetch(tuple(far.values()), row, max(1, _MIN_DISTANCE_BYTES // nbytes) if uncached else 1)

    def begin(self, nest: LoopNest, trip: int) -> list[str]:
        """Ask for the begin of the next row, before the first pass over this one; `rest` asks for what is left."""
        return self.lines(nest, "0", trip // _EARLY_FRACTION)

    def rest(self, nest: LoopNest, first: str, count: int, trip: int) -> list[str]:
        """Ask for a part of what `begin` leaves: as large a part as `count` elements from `first` on are of a row."""
        part = count - count // _EARLY_FRACTION
        return self.lines(
            nest, f"({trip // _EARLY_FRACTION} + {first} / {_EARLY_FRACTION} * {_EARLY_FRACTION - 1})", part
        )

    def lines(self, nest: LoopNest, first: str, count: int) -> list[str]:
        """Ask for as much of the next row as the innermost loop reads from `first` on."""
        found = []
        for node in self.loads:
            slot, form = node.data
            width, step = node.dtype.itemsize, form.coefficient(nest.inner)
            start = f"{nest.block_start(form)} + ({self.rows * form.coefficient(self.row)}ll)"
            start += f" + {first}" if step == 1 else f" - {first} - {count - 1}"
            found.append(
                f"cyx_ahead((const char *)p{slot} + {width} * ({start}), {-(-count * width // _LINE) * _LINE});"
            )
        return found


def busiest(passes: Sequence[Sequence[Node]], known: Sequence[Collection[Node]], nests: Sequence[LoopNest]) -> int:
    """The pass after the first one that computes most, given the roots of each and what it knows from others."""

    def work(p: int) -> int:
        nodes = [n for n in reachable(passes[p], (), known[p])[0] if n not in known[p] and n.kind in ("apply", "map")]
        inside = [n for n in nodes if nests[p].depth_of(n) == nests[p].depth]
        return sum(cost.flops(n.data) if n.kind == "apply" else 1000 for n in inside)

    return max(range(1, len(passes)), key=lambda p: (work(p), p))
