"""Row groups: reductions of rows merged with their operands and users over the same rows.

Every instruction of such a group has one value per row, or one per element of a row. `merge_rows` works on the drafts
of `plan.fusion` after its sweep: it merges a reduction of rows with its neighbours that preserve the row index, as long
as the merged group is not part of a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from enum import Enum, auto
from math import prod
from typing import TYPE_CHECKING

from cyxla.records import dataclass
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.groups import MOVEMENT, GroupKind
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.sum_order import MAX_PARTS, PART_NS
from cyxla.xla.cpu.reduce.rows.row_shape import Rows, rows_of
from cyxla.xla.hlo import Instruction
from cyxla.xla.service.refusal import Refusal

if TYPE_CHECKING:
    from cyxla.xla.cpu.plan.fusion import Draft, Fuser

MAX_BODY = 64  # instructions of a group that compute
MAX_BUFFERS = 24
_MAX_VISITS = 400


class _Granularity(Enum):
    """Values of an instruction in a row group."""

    ELEMENT = auto()  # one for each element of a row
    ROW = auto()  # one for each row
    OTHER = auto()


#: Reason for which a group of a kind does not iterate over given rows.
_NOT_BY_ROWS = {
    GroupKind.LOOP: "it computes values that are neither one for each row nor one for each element of a row",
    GroupKind.REDUCE: "it reduces other elements than these rows",
}


@dataclass(eq=False)
class _Cluster:
    """Drafts that are to be merged into one group."""

    drafts: list[Draft]
    rows: Rows | None
    low: int
    high: int
    refused: set[_Cluster] = field(default_factory=set)


def merge_rows(fuser: Fuser, ordered: Sequence[Draft], dependencies: dict[Draft, list[Draft]]) -> list[list[Draft]]:
    """Find the drafts to merge.

    Parameters
    ----------
    fuser : Fuser
        Fuser after its sweep.
    ordered : sequence of Draft
        Drafts of the fuser, in an order in which they can run.
    dependencies : dict
        Drafts that must run before each draft.

    Returns
    -------
    list of list of Draft
        Drafts of each new group, in an order in which they can run.
    """
    return _Merger(fuser, ordered, dependencies).run()


class _Merger:
    def __init__(self, fuser: Fuser, ordered: Sequence[Draft], dependencies: dict[Draft, list[Draft]]) -> None:
        self.fuser, self.ordered, self.dependencies = fuser, list(ordered), dependencies
        self.position = {d: n for n, d in enumerate(ordered)}
        self.clusters = {d: _Cluster([d], self._rows(d), n, n) for d, n in self.position.items()}
        self._request_cache: dict[tuple[Draft, Rows], dict[Instruction, _Granularity] | None] = {}
        self._merged: list[_Cluster] = []
        self._refused: list[tuple[Draft, Draft, str]] = []  # groups that read one another, with the reason
        self._bodies: dict[Draft, tuple[set[Instruction], float]] = {}

    def run(self) -> list[list[Draft]]:
        """Merge along the edges from the first group to the last and back; then groups that read the same array."""
        for drafts in (self.ordered, self.ordered[::-1]):
            for draft in drafts:
                for dependency in sorted(self.dependencies[draft], key=self.position.__getitem__, reverse=True):
                    self._try(dependency, draft)
        self._merge_siblings()
        for dependency, reader, reason in self._refused:
            if self.clusters[dependency] is not self.clusters[reader]:
                reader.reasons.append(Refusal("row fusion", f"{_describe(dependency)} and {_describe(reader)}", reason))
        merged = [c for c in dict.fromkeys(self.clusters.values()) if len(c.drafts) > 1]
        return [sorted(c.drafts, key=self.position.__getitem__) for c in merged]

    def _rows(self, draft: Draft) -> Rows | None:
        return rows_of(draft.root) if draft.kind is GroupKind.REDUCE and draft.root is not None else None

    # ------------------------------------------------------------------------------------------------ pairs
    def _try(self, dependency: Draft, reader: Draft) -> None:
        """Merge the clusters of two drafts, or note the reason for which that is not done."""
        one, other = self.clusters[dependency], self.clusters[reader]
        rows = one.rows or other.rows
        if one is other or rows is None or other in one.refused:
            return
        reason = self._refusal(one, other, rows)
        if reason is not None:
            one.refused.add(other)
            if reason:
                self._refused.append((dependency, reader, reason))
            return
        merged = _Cluster(one.drafts + other.drafts, rows, min(one.low, other.low), max(one.high, other.high))
        for draft in merged.drafts:
            self.clusters[draft] = merged
        self._merged = [c for c in self._merged if c not in (one, other)] + [merged]

    def _refusal(self, one: _Cluster, other: _Cluster, rows: Rows) -> str | None:
        """Return the reason why two groups are not merged; empty if it is their kinds; None if they can be."""
        drafts = one.drafts + other.drafts
        if other.rows not in (None, rows):
            return "they reduce rows of different sizes"
        for draft in drafts:
            if self._requests(draft, rows) is None:
                return _NOT_BY_ROWS.get(draft.kind, "")
        if any(self._reads_across_rows(a, b, rows) for a, b in ((one, other), (other, one))):
            return "it reads elements of other rows"
        if self._reads_size(one, other) or self._reads_size(other, one):
            return "it stops at a size that the other computes"
        if len(set().union(*(self._body(d)[0] for d in drafts))) > MAX_BODY:
            return f"more than {MAX_BODY} instructions"
        if self._buffers(drafts) > MAX_BUFFERS:
            return f"more than {MAX_BUFFERS} arrays"
        points = rows[0] * rows[1]
        ns = sum(self._body(d)[1] for d in drafts) * points + cost.memory_ns(points * 4)
        parts = min(int(ns / PART_NS), MAX_PARTS)
        if parts >= 2 and rows[0] < parts:
            return "too few rows for all cores"
        if self._reaches(one, other) or self._reaches(other, one):
            return "it would depend on itself through another group"
        return None

    def _body(self, draft: Draft) -> tuple[set[Instruction], float]:
        """Return the computing instructions of a draft, and the time of one element of each in ns."""
        if draft not in self._bodies:
            body = {i for i in draft.instructions if cost.flops(i) or i.opcode == "reduce"}
            self._bodies[draft] = (body, cost.element_ns(draft.instructions))
        return self._bodies[draft]

    def _buffers(self, drafts: Iterable[Draft]) -> int:
        members = set(drafts)
        instructions = {i for d in members for i in d.instructions}
        inputs = {v for i in instructions for _, v in self.fuser.sources[i] if v.instruction not in instructions}
        outputs = {o for d in members for o in d.outputs if self.fuser.is_read_outside(o, members)}
        return sum(v.instruction.opcode != "constant" for v in inputs) + len(outputs)

    def _reads_across_rows(self, reader: _Cluster, producer: _Cluster, rows: Rows) -> bool:
        """Return whether one group reads results of another at an index other than its own row and element."""
        outputs = {o for d in producer.drafts for o in d.outputs}
        for draft in reader.drafts:
            requests = self._requests(draft, rows) or {}
            if any(requests.get(o, _granularity(o, rows)) != _granularity(o, rows) for o in outputs):
                return True
        return False

    def _reads_size(self, reader: _Cluster, producer: _Cluster) -> bool:
        """Return whether one group reads a number of live elements that another computes."""
        computed = self.fuser.sizes & {o for d in producer.drafts for o in d.outputs}
        return bool(computed) and any(
            value.instruction in computed
            for draft in reader.drafts
            for ins in draft.instructions
            for _, value in self.fuser.sources[ins]
        )

    def _reaches(self, start: _Cluster, goal: _Cluster) -> bool:
        """Return whether a group depends on another through a third; True in doubt."""
        visited: set[_Cluster] = set()
        stack, lowest = [start], self._lowest(goal)
        while stack:
            cluster = stack.pop()
            for draft in cluster.drafts:
                for dependency in self.dependencies[draft]:
                    other = self.clusters[dependency]
                    if other is goal and cluster is not start:
                        return True
                    if other not in (start, goal) and other not in visited and other.high > lowest:
                        visited.add(other)
                        stack.append(other)
            if len(visited) > _MAX_VISITS:
                return True
        return False

    def _lowest(self, goal: _Cluster) -> int:
        """Return the position up to which no group can depend on another one; merged groups span several positions."""
        lowest, changed = goal.low, True
        while changed:
            reaching = [c.low for c in self._merged if c.high > lowest > c.low]
            changed = bool(reaching)
            lowest = min([lowest, *reaching])
        return lowest

    # ------------------------------------------------------------------------------------------------ siblings
    def _merge_siblings(self) -> None:
        """Merge groups over the same rows of the same array, although none reads another."""
        readers: dict[tuple[Value, Rows], list[_Cluster]] = {}
        for draft in self.ordered:
            cluster = self.clusters[draft]
            if cluster.rows is None:
                continue
            requests = self._requests(draft, cluster.rows) or {}
            for ins in draft.instructions:
                for _, value in self.fuser.sources[ins]:
                    is_row_array = (
                        value.shape.size == prod(cluster.rows)
                        and requests.get(value.instruction) == _Granularity.ELEMENT
                    )
                    if is_row_array and value.instruction not in draft.instructions:
                        readers.setdefault((value, cluster.rows), []).append(cluster)
        for clusters in readers.values():
            first = clusters[0].drafts[0]
            for other in dict.fromkeys(clusters[1:]):
                self._try(first, other.drafts[0])

    # ------------------------------------------------------------------------------------------------ granularity
    def _requests(self, draft: Draft, rows: Rows) -> dict[Instruction, _Granularity] | None:
        """Return the granularity, row or element, of all values of a draft; None if it does not iterate over rows."""
        key = (draft, rows)
        if key not in self._request_cache:
            self._request_cache[key] = self._granularities(draft, rows)
        return self._request_cache[key]

    def _granularities(self, draft: Draft, rows: Rows) -> dict[Instruction, _Granularity] | None:
        if draft.kind is not GroupKind.LOOP and (draft.kind is not GroupKind.REDUCE or self._rows(draft) != rows):
            return None
        levels = {o: _granularity(o, rows) for o in draft.outputs}
        if _Granularity.OTHER in levels.values() or any(i.control_predecessors for i in draft.instructions):
            return None
        for ins in sorted(draft.instructions, key=self.fuser.number.__getitem__, reverse=True):
            for position, value in self.fuser.sources[ins]:
                granularity = _operand_granularity(ins, position, value, levels.get(ins, _Granularity.OTHER), rows)
                source = value.instruction
                levels[source] = granularity if levels.get(source, granularity) == granularity else _Granularity.OTHER
        return None if draft.root is not None and levels.get(draft.root) != _Granularity.ROW else levels


def _describe(draft: Draft) -> str:
    ins = next(iter(draft.outputs))
    return f"{ins.opcode} {ins.shape.static}"


def _granularity(ins: Instruction, rows: Rows) -> _Granularity:
    size = ins.shape.size if ins.shape.is_array else -1
    return _Granularity.ELEMENT if size == prod(rows) else _Granularity.ROW if size == rows[0] else _Granularity.OTHER


def _operand_granularity(
    ins: Instruction, position: int, value: Value, level: _Granularity, rows: Rows
) -> _Granularity:
    """Return the granularity at which an instruction of a given granularity reads an operand."""
    if level == _Granularity.OTHER:
        return _Granularity.OTHER
    size = value.shape.size
    if ins.opcode == "reduce":
        return _Granularity.ELEMENT if position == 0 and size == prod(rows) else _Granularity.OTHER
    if ins.opcode == "broadcast":
        return _broadcast_granularity(ins, size, level, rows)
    if ins.opcode in _MOVES:
        return _Granularity.OTHER
    if ins.shape.size == size:
        return level
    return _Granularity.ROW if rows[0] == size == 1 else _Granularity.OTHER


def _broadcast_granularity(ins: Instruction, size: int, level: _Granularity, rows: Rows) -> _Granularity:
    mapping, dims = ins.attrs["dimensions"], ins.shape.dims
    if list(mapping) != sorted(mapping):
        return _Granularity.OTHER
    if ins.shape.size == size:
        return level
    if level == _Granularity.ROW or size != rows[0]:
        return _Granularity.ROW if size == rows[0] == 1 else _Granularity.OTHER
    mapped = [d for d in mapping if dims[d] > 1]
    leading = [d for d in range(len(dims)) if dims[d] > 1][: len(mapped)]
    return _Granularity.ROW if mapped == leading else _Granularity.OTHER


_MOVES = MOVEMENT - {"broadcast"}
