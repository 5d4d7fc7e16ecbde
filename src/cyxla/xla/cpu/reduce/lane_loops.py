"""Loops unrolled over the lanes of an accumulator: lane ``j`` runs iterations j, j + lanes .."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cyxla.records import dataclass
from cyxla.xla.cpu.c.independence import independence
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.loops.hoisting import LoopNest, reachable
from cyxla.xla.cpu.loops.index_map import Runtime, atoms_of
from cyxla.xla.cpu.loops.nodes import Apply, Call, Map, Node, flops

MAX_UNROLLED = 12  # simple operations of a loop body that is unrolled over all lanes
# Vectors that hold all lanes, at most; an unroll factor equal to the lanes would prevent vectorisation.
_MAX_UNROLL = 16


@dataclass(frozen=True)
class LaneLoop:
    """Loop over ``k``, in rounds of as many iterations as there are lanes.

    Attributes
    ----------
    lines, updates : sequence of str
        C of an iteration: statements, and then assignments to lane ``j``.
    before_round : sequence of str
        C before a round.
    after_round : function of str and int
        Returns the C after a round, of its first iteration and the number of its iterations.
    reads_on : bool
        Whether statements may run for all lanes of the last round (see `may_read_on`).
    """

    nest: LoopNest
    lanes: int
    lines: Sequence[str]
    updates: Sequence[str] = ()
    before_round: Sequence[str] = ()
    after_round: Callable[[str, int], list[str]] = lambda first, count: []
    reads_on: bool = False

    def write(self, writer: CWriter, trip: int, end: str = "") -> None:
        """Emit as many iterations as `trip`, or as `end` if that is the C of a number known at run time.

        Nothing comes before or after a round in the second case.
        """
        if end in ("", str(trip)):
            self._write_whole(writer, trip)
        else:
            self._write_live(writer, end)

    def _write_whole(self, writer: CWriter, trip: int) -> None:
        lanes, rest = self.lanes, trip % self.lanes
        full = trip - rest
        if full:
            with writer.block(f"for (int q = 0; q < {full}; q += {lanes})"):
                writer.lines([*self.before_round])
                self._write_round(writer, ["const int k = q + j;", *self.lines, *self.updates])
                writer.lines(self.after_round("q", lanes))
        if rest:
            self._write_rest(writer, str(rest), [f"const int k = {full} + j;", *self.lines, *self.updates])
            writer.lines(self.after_round(str(full), rest))

    def _write_live(self, writer: CWriter, end: str) -> None:
        """Emit a loop of a trip count known at run time.

        The lanes of the last round beyond the end keep their values, if reads beyond it are allowed: a loop of a known
        trip count is vectorised as a whole, while one of the elements that are left would mostly run one by one.
        """
        lines = ["const int k = q + j;", *self.lines]
        writer.line("int q = 0;")
        with writer.block(f"for (; q + {self.lanes} <= {end}; q += {self.lanes})"):
            self._write_round(writer, [*lines, *self.updates])
        if not self.reads_on:
            self._write_rest(writer, f"{end} - q", [*lines, *self.updates])
            return
        with writer.block(f"if (q < {end})"):
            writer.line(f"const int more = {end} - q;")
            self._write_round(writer, [*lines, *map(_where_left, self.updates)])

    def _write_round(self, writer: CWriter, lines: Sequence[str]) -> None:
        writer.lines([f"#pragma GCC unroll {_MAX_UNROLL}", *independence(self.lanes, self.nest.body.dtypes)])
        with writer.block(f"for (int j = 0; j < {self.lanes}; ++j)"):
            writer.lines([*lines])

    def _write_rest(self, writer: CWriter, count: str, lines: Sequence[str]) -> None:
        writer.lines(independence(count, self.nest.body.dtypes))
        with writer.block(f"for (int j = 0; j < {count}; ++j)"):
            writer.lines([*lines])


def _where_left(update: str) -> str:
    """Return an assignment to a lane, ``lane = value;``, that keeps the lanes beyond the end."""
    lane, value = update.removesuffix(";").split(" = ", 1)
    return f"{lane} = j < more ? {value} : {lane};"


def effort(nest: LoopNest, roots: list[Node]) -> int:
    """Return the number of simple operations in the innermost loop of an emitted nest."""
    nodes = [n for n in reachable(roots)[0] if nest.depth_of(n) == nest.depth]
    return sum(flops(n) for n in nodes if isinstance(n, Apply | Map | Call))


def may_read_on(roots: Sequence[Node]) -> bool:
    """Return whether values can be computed for indices beyond a size known at run time, up to its bound.

    They can unless they are read at indices that are values themselves, which are in range for the others alone.
    """
    return not any(isinstance(a, Runtime) for a in atoms_of(reachable(roots)[1]))
