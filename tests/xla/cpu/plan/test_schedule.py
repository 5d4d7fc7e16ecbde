"""The order of nodes is valid for every program and lets kernels run in place."""

import random

import pytest

from cyxla.types import Shape
from cyxla.xla.cpu.kernel.kernel import Kernel, Step, Value
from cyxla.xla.cpu.plan.nodes import KernelNode
from cyxla.xla.cpu.plan.schedule import defer_overwriters
from cyxla.xla.hlo import Computation

COMPUTATION = Computation("c")


def value() -> Value:
    return Value(COMPUTATION.add("iota", (), {"iota_dimension": 0}, shape=Shape.array("f32", (4,))))


def node(reads: list[Value], writes: list[Value], in_place: tuple = ()) -> KernelNode:
    return KernelNode(Step(Kernel("KERNEL"), tuple(reads), tuple(writes), in_place))


@pytest.mark.parametrize("seed", range(30))
def test_every_node_runs_once_after_its_operands(seed):
    rng = random.Random(seed)
    pool = [value() for _ in range(3)]
    given, nodes = set(pool), []
    for _ in range(30):
        reads = [rng.choice(pool) for _ in range(rng.randint(1, 3))]
        writes = [value() for _ in range(rng.randint(1, 2))]
        nodes.append(node(reads, writes, tuple((0, r) for r in range(len(reads)) if rng.random() < 0.5)))
        pool += writes
    order = defer_overwriters(nodes)
    assert sorted(map(id, order)) == sorted(map(id, nodes))
    for n in order:
        assert given.issuperset(n.step.reads)
        given.update(n.step.writes)


def test_in_place_kernels_wait_for_other_readers():
    x, new, other, last = (value() for _ in range(4))
    counter, reader, late = node([x], [new], ((0, 0),)), node([x], [other]), node([other, x], [last])
    assert defer_overwriters([counter, reader, late]) == [reader, late, counter]


def test_nothing_else_moves():
    x, a, b, c = (value() for _ in range(4))
    nodes = [node([x], [a]), node([x], [b]), node([a], [c], ((0, 0),))]
    assert defer_overwriters(nodes) == nodes


def test_effects_keep_their_order():
    x, a, b, c, d = (value() for _ in range(5))
    overwriter, reader = node([x], [a], ((0, 0),)), node([x], [b])
    first, second = node([a], [c]), node([], [d])
    nodes = [overwriter, first, second, reader]
    assert defer_overwriters(nodes) == [second, reader, overwriter, first]
    assert defer_overwriters(nodes, [1, 2]) == [reader, overwriter, first, second]


def test_two_that_wait_for_each_other_keep_their_order():
    x, a, b = (value() for _ in range(3))
    nodes = [node([x], [a], ((0, 0),)), node([x], [b], ((0, 0),))]
    assert defer_overwriters(nodes) == nodes
