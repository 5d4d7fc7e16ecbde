"""Queries on live ranges: whether two arrays are live at once, and which are live at the end."""

from __future__ import annotations

from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.cpu.memory.lifetimes import LiveRange, LiveRanges, live_ranges
from cyxla.xla.cpu.plan.nodes import Plan
from cyxla.xla.hlo import Instruction


class BufferLiveness:
    """Queries on the live ranges of the arrays of a plan.

    Parameters
    ----------
    plan : Plan
        Plan of an entry computation; its order is the order of time.

    Examples
    --------
    >>> from cyxla.xla.cpu.plan.planner import plan
    >>> from cyxla.xla.hlo import parse_module
    >>> less = "l { p = f32[] parameter(0) q = f32[] parameter(1) ROOT r = pred[] compare(p, q), direction=LT }"
    >>> sort = "a = f32[8] sort(x), dimensions={0}, to_apply=l"
    >>> module = parse_module(less + " ENTRY e { x = f32[8] parameter(0) " + sort + " ROOT b = f32[8] negate(a) }")
    >>> x, a, b = (next(i for i in module.entry.instructions if i.name == n) for n in "xab")
    >>> liveness = BufferLiveness(plan(module.entry))
    >>> liveness.may_interfere(a, b), liveness.may_interfere(x, a), liveness.maybe_live_out(b)
    (False, True, True)
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._ranges = live_ranges(plan)
        self._handovers = _handover_pairs(self._ranges)
        self._results = set(plan.results)

    def may_interfere(self, a: Value | Instruction, b: Value | Instruction) -> bool:
        """Return whether two arrays may not share a buffer.

        Arrays that are computed inside a kernel and never in memory interfere with nothing; an array that a kernel may
        overwrite in place does not interfere with the result.
        """
        first, second = self._life(a), self._life(b)
        if first is None or second is None or first is second:
            return False
        if first.start > second.start:
            first, second = second, first
        if first.end == second.start:
            return (first, second) not in self._handovers
        return first.end > second.start

    def maybe_live_out(self, value: Value | Instruction) -> bool:
        """Return whether an array may be (part of) the result, and so live until the end of the call."""
        return _value(value) in self._results

    def live_range(self, value: Value | Instruction) -> tuple[int, int] | None:
        """Return the first and last moment at which an array is live; None if it is never in memory."""
        life = self._life(value)
        return None if life is None else (life.start, life.end)

    def _life(self, value: Value | Instruction) -> LiveRange | None:
        return self._ranges.by_value.get(_value(value))


def _value(value: Value | Instruction) -> Value:
    return value if isinstance(value, Value) else resolve(value)


def _handover_pairs(ranges: LiveRanges) -> set[tuple[LiveRange, LiveRange]]:
    """Return the pairs of which the second may overwrite the first, when one ends and the other begins."""
    required = [s for sharings in ranges.must_share.values() for s in sharings]
    pairs = {(s.source, s.target) for s in (*required, *ranges.may_share) if s.reads_once}
    return pairs | {(m.source, m.target) for moves in ranges.moves.values() for m in moves}
