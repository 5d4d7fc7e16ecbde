"""Products of one large matrix with several vectors become one kernel, which reads the matrix once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final

from cyxla.records import dataclass
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.cpu.kernel.groups import Group, GroupKind
from cyxla.xla.cpu.kernel.kernel import Step, Value
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.cpu.plan.nodes import KernelNode, Node
from cyxla.xla.cpu.plan.schedule import reads_of, writes_of

if TYPE_CHECKING:
    from cyxla.xla.cpu.dot.one_pass import MatrixReader

MIN_BYTES: Final = 4 * machine.L2_BYTES  # smaller matrices stay in the caches from one product to the next


@dataclass
class _SharedPass:
    """Products that are to become one kernel, at one position in the order of nodes."""

    position: int
    members: dict[int, MatrixReader] = field(default_factory=dict)  # by position

    def takes(self, reader: MatrixReader) -> bool:
        """Return whether a product can be added that follows all members, wherever its other operands are from."""
        members = self.members.values()
        parts = {m.part for m in members if m.part}
        return all(m.matrix == reader.matrix and reader.can_read(m) for m in members) and (
            not reader.part or parts <= {reader.part}
        )

    @property
    def writes(self) -> set[Value]:
        return {v for m in self.members.values() for v in m.step.writes}


def share_matrices(nodes: Sequence[Node]) -> list[Node]:
    """Fuse products of one matrix and several vectors, of which each may weight rows by the results of others.

    Parameters
    ----------
    nodes : sequence of Node
        Nodes in an order in which they can run.
    """
    readers = _readers(nodes)
    if not readers:
        return list(nodes)
    passes: list[_SharedPass] = []
    defined_at: dict[Value, int] = {}  # position of the node that defines an array
    for position, node in enumerate(nodes):
        defined_at.update(dict.fromkeys(writes_of(node), position))
        if position in readers:
            _assign(position, readers[position], passes, nodes, defined_at)
    return _with_passes(nodes, [p for p in passes if len(p.members) > 1])


def _readers(nodes: Sequence[Node]) -> dict[int, MatrixReader]:
    """Return the products of matrices that several of them read, by position."""
    matrices: dict[Value, list[tuple[int, Step]]] = {}
    for position, node in enumerate(nodes):
        if isinstance(node, KernelNode) and len(node.step.groups) == 1:
            matrix = _large_matrix(node.step.groups[0])
            if matrix is not None:
                matrices.setdefault(matrix, []).append((position, node.step))
    several = [pair for pairs in matrices.values() if len(pairs) > 1 for pair in pairs]
    if not several:
        return {}
    from cyxla.xla.cpu.dot.one_pass import MatrixReader

    found = {position: MatrixReader.of(step.groups[0], step) for position, step in several}
    return {position: reader for position, reader in found.items() if reader is not None}


def _large_matrix(group: Group) -> Value | None:
    """Return the matrix beyond the caches that a group multiplies with a vector; None for other groups."""
    if group.kind is not GroupKind.DOT or group.live or group.stops:
        return None
    larger, smaller = sorted(group.root.operands, key=lambda o: -o.shape.size)
    is_vector = smaller.shape.size * group.root.shape.size == larger.shape.size
    return resolve(larger) if larger.shape.nbytes > MIN_BYTES and is_vector else None


def _assign(
    position: int,
    reader: MatrixReader,
    passes: list[_SharedPass],
    nodes: Sequence[Node],
    defined_at: dict[Value, int],
) -> None:
    """Add a product to a pass, where this or the product is; else to a pass of its own."""
    for shared in passes:
        if not shared.takes(reader):
            continue
        results = shared.writes
        others = [v for v in reader.step.reads if v not in results]
        if max((defined_at.get(v, -1) for v in others), default=-1) >= shared.position:
            if _reads_any(nodes[shared.position + 1 : position], results):
                continue
            shared.position = position
        shared.members[position] = reader
        defined_at.update(dict.fromkeys(shared.writes, shared.position))
        return
    passes.append(_SharedPass(position, {position: reader}))


def _reads_any(nodes: Iterable[Node], values: set[Value]) -> bool:
    return any(not values.isdisjoint(reads_of(node)) for node in nodes)


def _with_passes(nodes: Sequence[Node], passes: Sequence[_SharedPass]) -> list[Node]:
    if not passes:
        return list(nodes)
    from cyxla.xla.cpu.dot.one_pass import one_pass

    members = {position for shared in passes for position in shared.members}
    steps = {shared.position: one_pass(list(shared.members.values())) for shared in passes}
    return [
        KernelNode(steps[position]) if position in steps else node
        for position, node in enumerate(nodes)
        if position in steps or position not in members
    ]
