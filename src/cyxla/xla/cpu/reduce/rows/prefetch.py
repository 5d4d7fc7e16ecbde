"""Prefetch of the next row during the passes over this one.

A row is read from memory in its first pass only; without prefetch, memory would be idle in all others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cyxla.records import dataclass
from cyxla.xla.cpu.kernel import cost, machine
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.loops.hoisting import LoopNest, reachable
from cyxla.xla.cpu.loops.index_map import Atom
from cyxla.xla.cpu.loops.nodes import Apply, Load, Map, Node, flops

_CACHED_BYTES = machine.L2_BYTES // 2  # smaller arrays stay in L2
_MAX_PREFETCH_BYTES = machine.L2_BYTES // 8  # longer rows would evict the lines prefetched first
RUN_LENGTH = 256  # elements between two prefetches: a whole row at once overflows the line fill buffers
_MIN_DISTANCE_BYTES = machine.L1_BYTES // 2  # least prefetch distance for main memory: several short rows
_EARLY_DIVISOR = 8  # 1/8 of a row is prefetched at once: as much as memory delivers during the first pass
_LINE = machine.LINE_BYTES


@dataclass(frozen=True)
class Runs:
    """Runs that a loop is split into: `count` of equal length, and a shorter tail."""

    length: int
    count: int
    tail: int

    @staticmethod
    def of(trip: int, target: int = RUN_LENGTH) -> Runs:
        """Return runs without a tail, if possible: a tail would duplicate the body of the loop."""
        longest = 2 * target
        if trip <= longest:
            return Runs(trip, 1, 0)
        divisors = [n for n in range(64, longest + 1, 64) if trip % n == 0]
        length = min(divisors, key=lambda n: (abs(n - target), n), default=target)
        return Runs(length, trip // length, trip % length)


@dataclass(frozen=True)
class Prefetch:
    """Loads whose next row is prefetched in one of the passes.

    Attributes
    ----------
    loads : tuple of Load
        Loads to prefetch.
    row : Atom
        Loop over rows.
    rows : int
        Prefetch distance in rows.
    """

    loads: tuple[Load, ...]
    row: Atom
    rows: int = 1

    @staticmethod
    def of(loads: Collection[Load], arrays: Sequence[Value], row: Atom, inner: tuple[Atom, int]) -> Prefetch | None:
        """Return the prefetch of loads from arrays beyond L2; None if there are none, or rows are too long."""
        atom, trip = inner
        beyond_cache = {
            (n.slot, n.form): n
            for n in loads
            if n.form.coefficient(atom) in (1, -1)
            and n.form.coefficient(row)
            and arrays[n.slot].shape.nbytes > _CACHED_BYTES
        }
        nbytes = sum(n.dtype.itemsize * trip for n in beyond_cache.values())
        if not beyond_cache or nbytes > _MAX_PREFETCH_BYTES:
            return None
        is_in_memory = (
            sum(arrays[slot].shape.nbytes for slot in {slot for slot, _ in beyond_cache}) > cost.STREAMING_BYTES
        )
        return Prefetch(tuple(beyond_cache.values()), row, max(1, _MIN_DISTANCE_BYTES // nbytes) if is_in_memory else 1)

    def begin(self, nest: LoopNest, trip: int) -> list[str]:
        """Return the prefetch of the beginning of the next row, before the first pass; see `remainder`."""
        return self.lines(nest, "0", trip // _EARLY_DIVISOR)

    def remainder(self, nest: LoopNest, first: str, count: int, trip: int) -> list[str]:
        """Return the prefetch of a part of the remainder, in proportion to `count` elements from `first` on."""
        part = count - count // _EARLY_DIVISOR
        return self.lines(nest, f"({trip // _EARLY_DIVISOR} + {first} / {_EARLY_DIVISOR} * {_EARLY_DIVISOR - 1})", part)

    def lines(self, nest: LoopNest, first: str, count: int) -> list[str]:
        """Return the prefetch of `count` elements of the next row, from `first` on."""
        lines = []
        for node in self.loads:
            slot, form = node.slot, node.form
            width, step = node.dtype.itemsize, form.coefficient(nest.inner)
            start = f"{nest.block_start(form)} + ({self.rows * form.coefficient(self.row)}ll)"
            start += f" + {first}" if step == 1 else f" - {first} - {count - 1}"
            lines.append(
                f"cyx_prefetch((const char *)p{slot} + {width} * ({start}), {-(-count * width // _LINE) * _LINE});"
            )
        return lines


def busiest(passes: Sequence[Sequence[Node]], saved: Sequence[Collection[Node]], nests: Sequence[LoopNest]) -> int:
    """Return the pass after the first one that computes most, given each pass's roots and saved values."""

    def work(p: int) -> int:
        nodes = reachable(passes[p], (), saved[p])[0]
        computed = [n for n in nodes if n not in saved[p] and isinstance(n, Apply | Map)]
        return sum(flops(n) for n in computed if nests[p].depth_of(n) == nests[p].depth)

    return max(range(1, len(passes)), key=lambda p: (work(p), p))
