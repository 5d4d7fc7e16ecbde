"""A graph that stays without cycles while its edges are contracted.

Nodes are numbers. An order in which every edge points forward is kept up to date as edges come (Pearce and Kelly's
algorithm), so that a search need not leave the part of the order between the two ends of an edge.
"""

from __future__ import annotations

from collections.abc import Iterable


class GraphCycles:
    """Numbers with edges between them, and no cycle.

    Parameters
    ----------
    count : int
        Nodes ``0 .. count - 1``, in this order at first.
    """

    def __init__(self, count: int = 0) -> None:
        self.successors: list[set[int]] = [set() for _ in range(count)]
        self.predecessors: list[set[int]] = [set() for _ in range(count)]
        self.rank = list(range(count))

    def new_node(self) -> int:
        """Add a node at the end of the order."""
        self.successors.append(set())
        self.predecessors.append(set())
        self.rank.append(len(self.rank))
        return len(self.rank) - 1

    def insert_edge(self, source: int, target: int) -> bool:
        """Add an edge unless it would close a cycle; tells whether it is there now."""
        if source == target:
            return False
        if target in self.successors[source]:
            return True
        if self.rank[source] > self.rank[target]:
            after = self._reach(target, self.successors, upper=self.rank[source])
            if source in after:
                return False
            self._reorder(self._reach(source, self.predecessors, lower=self.rank[target]), after)
        self.successors[source].add(target)
        self.predecessors[target].add(source)
        return True

    def _reach(self, start: int, edges: list[set[int]], *, upper: int | None = None, lower: int = -1) -> set[int]:
        """What a node reaches without leaving a part of the order."""
        rank = self.rank
        limit = len(rank) if upper is None else upper
        seen, stack = {start}, [start]
        while stack:
            for node in edges[stack.pop()]:
                if node not in seen and lower <= rank[node] <= limit:
                    seen.add(node)
                    stack.append(node)
        return seen

    def _reorder(self, before: Iterable[int], after: Iterable[int]) -> None:
        """Share the places of two sets anew, so that the first stands before the second."""
        nodes = [*sorted(before, key=self.rank.__getitem__), *sorted(after, key=self.rank.__getitem__)]
        for node, rank in zip(nodes, sorted(self.rank[n] for n in nodes), strict=True):
            self.rank[node] = rank

    def remove_edge(self, source: int, target: int) -> None:
        """Take an edge out, if it is there."""
        self.successors[source].discard(target)
        self.predecessors[target].discard(source)

    def has_edge(self, source: int, target: int) -> bool:
        """Whether an edge is there."""
        return target in self.successors[source]

    def is_reachable(self, source: int, target: int) -> bool:
        """Whether a path leads from one node to another."""
        if self.rank[source] > self.rank[target]:
            return False
        return target in self._reach(source, self.successors, upper=self.rank[target])

    def contract_edge(self, source: int, target: int) -> int | None:
        """Make the ends of an edge one node, unless another path between them would then be a cycle.

        Returns
        -------
        int or None
            The number that stands for both; the other has no edges any more.
        """
        self.remove_edge(source, target)
        if self.is_reachable(source, target):
            self.successors[source].add(target)
            self.predecessors[target].add(source)
            return None
        degree = [len(self.successors[n]) + len(self.predecessors[n]) for n in (source, target)]
        kept, gone = (target, source) if degree[1] > degree[0] else (source, target)
        successors, predecessors = self.successors[gone], self.predecessors[gone]
        self.successors[gone], self.predecessors[gone] = set(), set()
        for node in successors:
            self.predecessors[node].discard(gone)
        for node in predecessors:
            self.successors[node].discard(gone)
        for node in sorted(successors):
            self.insert_edge(kept, node)
        for node in sorted(predecessors):
            self.insert_edge(node, kept)
        return kept
