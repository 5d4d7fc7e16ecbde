"""Schedule of a plan's nodes: in order, but a node that can overwrite an array waits for its other readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import pairwise

from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.plan.nodes import KernelNode, Node, WhileNode


def reads_of(node: Node) -> tuple[Value, ...]:
    """Return the arrays that a node reads, without those that only computations inside it read."""
    if isinstance(node, KernelNode):
        return node.step.reads
    if isinstance(node, WhileNode):
        return tuple(node.initial)
    return (node.selector, *(v for values in node.arguments for v in values))


def writes_of(node: Node) -> tuple[Value, ...]:
    """Return the arrays that a node writes."""
    if isinstance(node, KernelNode):
        return node.step.writes
    return tuple(node.state if isinstance(node, WhileNode) else node.results)


def defer_overwriters(nodes: Sequence[Node], effects: Sequence[int] = ()) -> list[Node]:
    """Reorder nodes, with in-place kernels after the other readers of the arrays that they overwrite.

    A kernel that could work in place needs a copy while others have yet to read its operand; in a loop, that copy would
    be made in every iteration.

    Parameters
    ----------
    nodes : sequence of Node
        Nodes in an order in which they can run.
    effects : sequence of int
        Positions of the nodes with side effects, ascending, which keep their order.
    """
    return _Scheduler(nodes, effects).run()


class _Scheduler:
    def __init__(self, nodes: Sequence[Node], effects: Sequence[int]) -> None:
        self.nodes = nodes
        self.next_effect = dict(pairwise(effects))
        self.readers: dict[Value, list[int]] = {}
        for n, node in enumerate(nodes):
            for value in dict.fromkeys(reads_of(node)):
                self.readers.setdefault(value, []).append(n)
        self.pending_readers = Counter({value: len(numbers) for value, numbers in self.readers.items()})
        defined = {value for node in nodes for value in writes_of(node)}
        self.missing_inputs = [len({v for v in reads_of(node) if v in defined}) for node in nodes]
        for n in self.next_effect.values():
            self.missing_inputs[n] += 1
        self.ready: list[int] = []
        self.waiting: list[int] = []  # ready, but would overwrite arrays that others have yet to read
        self.done = [False] * len(nodes)

    def run(self) -> list[Node]:
        for n, missing in enumerate(self.missing_inputs):
            if not missing:
                self.offer(n)
        order = []
        while self.ready or self.waiting:
            n = heappop(self.ready or self.waiting)
            if not self.done[n]:
                self.done[n] = True
                order.append(self.nodes[n])
                self.finish(n)
        return order

    def offer(self, n: int) -> None:
        heappush(self.waiting if self.overwrites(n) else self.ready, n)

    def overwrites(self, n: int) -> bool:
        """Return whether a node could overwrite an array that others have yet to read."""
        node = self.nodes[n]
        if not isinstance(node, KernelNode):
            return False
        step = node.step
        return any(self.pending_readers[step.reads[r]] > 1 for _, r in (*step.in_place, *step.must_alias))

    def finish(self, n: int) -> None:
        for value in dict.fromkeys(reads_of(self.nodes[n])):
            self.pending_readers[value] -= 1
            if self.pending_readers[value] == 1:  # the last reader may now overwrite it
                for other in self.readers[value]:
                    if not self.done[other] and not self.missing_inputs[other] and not self.overwrites(other):
                        heappush(self.ready, other)
        for value in writes_of(self.nodes[n]):
            for reader in self.readers.get(value, ()):
                self.provide(reader)
        if n in self.next_effect:
            self.provide(self.next_effect[n])

    def provide(self, n: int) -> None:
        """Note that one of the things that a node waits for is there."""
        self.missing_inputs[n] -= 1
        if not self.missing_inputs[n]:
            self.offer(n)
