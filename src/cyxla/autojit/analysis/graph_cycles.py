"""A directed graph that stays acyclic while its edges are contracted.

Nodes are numbers. A topological order is maintained as edges are inserted (Pearce and Kelly's algorithm), so that a
search is limited to the part of the order between the two ends of an edge.
"""

from __future__ import annotations

from collections.abc import Iterable


class GraphCycles:
    """An acyclic graph of numbered nodes.

    Parameters
    ----------
    count : int
        Number of initial nodes ``0 .. count - 1``, which are in this order at first.
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
        """Add an edge unless it would close a cycle, and return True if the graph has the edge."""
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
        """Return the nodes reachable from a node within a range of ranks."""
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
        """Redistribute the ranks of two sets of nodes, so that the first set precedes the second."""
        nodes = [*sorted(before, key=self.rank.__getitem__), *sorted(after, key=self.rank.__getitem__)]
        for node, rank in zip(nodes, sorted(self.rank[n] for n in nodes), strict=True):
            self.rank[node] = rank

    def remove_edge(self, source: int, target: int) -> None:
        """Remove an edge, if there is one."""
        self.successors[source].discard(target)
        self.predecessors[target].discard(source)

    def has_edge(self, source: int, target: int) -> bool:
        """Return True if the graph has an edge."""
        return target in self.successors[source]

    def is_reachable(self, source: int, target: int) -> bool:
        """Return True if a path leads from one node to another."""
        if self.rank[source] > self.rank[target]:
            return False
        return target in self._reach(source, self.successors, upper=self.rank[target])

    def contract_edge(self, source: int, target: int) -> int | None:
        """Merge the ends of an edge into one node, unless another path between them would become a cycle.

        Returns
        -------
        int or None
            Number of the merged node, one of the two; the other has no edges any more. None if nothing was merged.
        """
        self.remove_edge(source, target)
        if self.is_reachable(source, target):
            self.successors[source].add(target)
            self.predecessors[target].add(source)
            return None
        degree = [len(self.successors[n]) + len(self.predecessors[n]) for n in (source, target)]
        survivor, absorbed = (target, source) if degree[1] > degree[0] else (source, target)
        successors, predecessors = self.successors[absorbed], self.predecessors[absorbed]
        self.successors[absorbed], self.predecessors[absorbed] = set(), set()
        for node in successors:
            self.predecessors[node].discard(absorbed)
        for node in predecessors:
            self.successors[node].discard(absorbed)
        for node in sorted(successors):
            self.insert_edge(survivor, node)
        for node in sorted(predecessors):
            self.insert_edge(node, survivor)
        return survivor
