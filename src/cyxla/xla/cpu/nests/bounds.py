"""Bounds of loops under conditions on their indices, and the distance of a load from a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from cyxla.records import dataclass
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import CONTROL_FLOW
from cyxla.xla.cpu.loops.index_map import Affine, Condition, Loop, Runtime, atoms_of
from cyxla.xla.cpu.loops.nodes import External, Load, Node
from cyxla.xla.cpu.nests.space import NestSpace, loop_atoms
from cyxla.xla.hlo import Instruction

_FAR = 1 << 61  # elements, beyond all arrays
# Parts of its greatest trip count that a loop is assumed to make: with bounds known at run time, and with bounds read
# from arrays, as the rows of a sparse matrix have, of which all loops together make one count.
_BOUNDED_SHARE, _SEGMENT_SHARE = 1 / 4, 1 / 64


@dataclass
class Bounds:
    """Conditions that hold inside some loops, as bounds of the loops.

    Attributes
    ----------
    conditions : list of Condition
        The conditions.
    lows, highs : dict of Loop to list of Affine
        Indices at which a loop starts and stops, at the earliest and at the latest.
    """

    conditions: list[Condition] = field(default_factory=list)
    lows: dict[Loop, list[Affine]] = field(default_factory=dict)
    highs: dict[Loop, list[Affine]] = field(default_factory=dict)

    def of(self, loop: Loop) -> tuple[list[Affine], list[Affine]]:
        """Return the first indices of a loop, and those at which it stops."""
        return self.lows.get(loop, []), self.highs.get(loop, [])

    @property
    def forms(self) -> list[Affine]:
        """All bounds."""
        return [f for ends in (*self.lows.values(), *self.highs.values()) for f in ends]

    @property
    def share(self) -> float:
        """Part of the points of the iteration space that are assumed to be inside."""
        if not self.conditions:
            return 1.0
        scalars = [atom.node for atom in atoms_of(self.forms) if isinstance(atom, Runtime)]
        return _SEGMENT_SHARE if any(map(_is_read, scalars)) else _BOUNDED_SHARE


def _is_read(node: Node) -> bool:
    """Return whether a scalar is computed from elements of arrays, rather than from counters alone."""
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, Load):
            return True
        if isinstance(current, External) and isinstance(current.key, Value) and _reads_arrays(current.key.instruction):
            return True
        stack += current.operands
    return False


def _reads_arrays(ins: Instruction) -> bool:
    stack, seen = [ins], set[Instruction]()
    while stack:
        current = stack.pop()
        if current in seen or current.opcode in ("parameter", "get-tuple-element", *CONTROL_FLOW):
            continue
        seen.add(current)
        if any(o.shape.is_array and o.shape.size > 1 for o in current.operands):
            return True
        stack += current.operands
    return False


def bounds_of(space: NestSpace, conditions: Sequence[Condition]) -> Bounds | None:
    """Return the bounds that conditions are equivalent to; None if some condition is no bound of a loop."""
    bounds = Bounds(list(conditions))
    for condition in conditions:
        loops = loop_atoms(condition.form)
        inside = [a for a in atoms_of([condition.form]) if isinstance(a, Loop)]
        if not loops or len(inside) != len(loops):
            return None
        loop, coefficient = max(loops, key=lambda term: term[0].position)
        if abs(coefficient) != 1:
            return None
        rest = space.combine(((condition.form, 1), (Affine(0, ((loop, 1),)), -coefficient)))
        if coefficient == 1:
            low, high = rest.scale(-1).shift(condition.low), rest.scale(-1).shift(condition.high + 1)
        else:
            low, high = rest.shift(-condition.high), rest.shift(1 - condition.low)
        if low.high > -_FAR:
            bounds.lows.setdefault(loop, []).append(low)
        if high.low < _FAR:
            bounds.highs.setdefault(loop, []).append(high)
    return bounds


def overlap(space: NestSpace, store: Affine, load: Affine) -> int | None:
    """Return how many iterations after a load a store to its element runs, in order; 0 for never.

    The distance is positive if elements are read before they are overwritten, negative if afterwards, and None if it
    is unknown.
    """
    gap = space.combine(((load, 1), (store, -1)))
    if not gap.is_constant:
        return None
    if any(isinstance(a, Loop) for a in atoms_of([store])) and len(loop_atoms(store)) != sum(
        isinstance(a, Loop) for a in atoms_of([store])
    ):
        return None
    loops = sorted(loop_atoms(store), key=lambda term: term[0].position)
    solutions = _solutions(gap.constant, [(c, a.high) for a, c in loops])
    if solutions is None:
        return None
    signs = {next((1 if d > 0 else -1 for d in solution if d), 0) for solution in solutions}
    return 0 if not signs else None if len(signs) > 1 else signs.pop()


def _solutions(gap: int, loops: Sequence[tuple[int, int]]) -> list[tuple[int, ...]] | None:
    """Return the differences of counters, at most `high` each, that sum up to a gap; None if they are many."""
    if not loops:
        return [()] if gap == 0 else []
    (step, high), rest = loops[0], loops[1:]
    reach = sum(abs(c) * h for c, h in rest)
    candidates = _near(gap, step, reach, high)
    if len(candidates) > 4:
        return None
    found: list[tuple[int, ...]] = []
    for d in candidates:
        inner = _solutions(gap - d * step, rest)
        if inner is None:
            return None
        found += [(d, *i) for i in inner]
    return found


def _near(gap: int, step: int, reach: int, high: int) -> list[int]:
    """Return the multiples of a step that come as near to a gap as the rest of the loops reaches."""
    middle, width = gap // step, reach // abs(step) + 2
    if width > 8:
        return list(range(8))  # too many
    return [d for d in range(middle - width, middle + width + 1) if abs(d) <= high and abs(gap - d * step) <= reach]
