"""Buffer assignment: random plans give the same results in shared and in separate memory."""

import random
from collections import Counter

import pytest

from cyxla.types import Shape
from cyxla.xla.cpu.kernel.kernel import Kernel, Step, Value
from cyxla.xla.cpu.memory.arena import ALIGN, Temporary, assign_offsets
from cyxla.xla.cpu.memory.buffers import Buffers, assign
from cyxla.xla.cpu.memory.locations import Location
from cyxla.xla.cpu.plan.nodes import ConditionalNode, KernelNode, Plan, WhileNode
from cyxla.xla.hlo import Computation

TURNS = 3


class Maker:
    """Maker of random plans with arrays of one or two sizes; the result of a kernel is a hash of its operands."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.computation = Computation("c")

    def value(self, size: int | None = None) -> Value:
        shape = Shape.array("s32", (size or self.random.choice((16, 16, 32)),))
        return Value(self.computation.add("iota", (), {"iota_dimension": 0}, shape=shape))

    def kernel(self, pool: list[Value]) -> KernelNode:
        rng = self.random
        reads = tuple(rng.choice(pool) for _ in range(rng.randint(1, 3)))
        writes = tuple(self.value() for _ in range(rng.randint(1, 2)))
        pairs = [(w, r) for w in range(len(writes)) for r in range(len(reads)) if same_size(writes[w], reads[r])]
        rng.shuffle(pairs)
        must = tuple(pairs[:1]) if pairs and rng.random() < 0.3 else ()
        # A kernel may name several candidates, but uses one array for one purpose.
        may = tuple(p for p in pairs if p[0] not in [m[0] for m in must])
        pool.extend(writes)
        return KernelNode(Step(Kernel(f"KERNEL {rng.random()}", scratch=rng.choice((0, 64))), reads, writes, may, must))

    def nodes(self, pool: list[Value], depth: int) -> list:
        nodes = []
        for _ in range(self.random.randint(1, 6)):
            kind = self.random.random()
            if kind < 0.7 or depth == 0:
                nodes.append(self.kernel(pool))
            elif kind < 0.88:
                nodes.append(self.loop(pool, depth))
            else:
                nodes.append(self.branches(pool, depth))
        return nodes

    def plan(self, parameters: list[Value], outer: list[Value], sizes: list[int], depth: int) -> Plan:
        # HLO's computations see their parameters only; seeing outer values too makes for harder plans.
        pool = [*outer, *parameters]
        nodes = self.nodes(pool, depth)
        results = [
            self.random.choice(
                [v for v in (parameters if self.random.random() < 0.4 else pool) if v.shape.size == s]
                or [v for v in pool if v.shape.size == s]
                or [None]
            )
            for s in sizes
        ]
        for n, (result, size) in enumerate(zip(results, sizes, strict=True)):
            if result is None:
                made = self.value(size)
                nodes.append(KernelNode(Step(Kernel(f"KERNEL fill {self.random.random()}"), (pool[0],), (made,))))
                results[n] = made
        return Plan(self.computation, nodes, parameters, results)

    def loop(self, pool: list[Value], depth: int) -> WhileNode:
        initial = [self.random.choice(pool) for _ in range(self.random.randint(1, 4))]
        sizes = [v.shape.size for v in initial]
        fresh = lambda: [self.value(s) for s in sizes]  # noqa: E731
        condition = self.plan(fresh(), list(pool), [16], 0)
        body = self.plan(fresh(), list(pool), sizes, depth - 1)
        state = fresh()
        pool.extend(state)
        return WhileNode(initial, state, condition, body)

    def branches(self, pool: list[Value], depth: int) -> ConditionalNode:
        sizes = [self.random.choice((16, 32)) for _ in range(self.random.randint(1, 3))]
        branches, arguments = [], []
        for _ in range(self.random.randint(1, 3)):
            arguments.append([self.random.choice(pool) for _ in range(2)])
            branches.append(self.plan([self.value(v.shape.size) for v in arguments[-1]], list(pool), sizes, depth - 1))
        selector = self.random.choice(pool)
        results = [self.value(s) for s in sizes]
        pool.extend(results)
        return ConditionalNode(selector, branches, arguments, results)


def same_size(a: Value, b: Value) -> bool:
    return a.shape.nbytes == b.shape.nbytes


def work(node: KernelNode, contents: tuple) -> list[int]:
    return [hash((node.step.kernel.text, w, contents)) for w in range(len(node.step.writes))]


class Reference:
    """Runs a plan with a memory for every value."""

    def __init__(self) -> None:
        self.held: dict[Value, int] = {}

    def run(self, plan: Plan, arguments: list[int]) -> list[int]:
        self.held.update(zip(plan.parameters, arguments, strict=True))
        for node in plan.nodes:
            if isinstance(node, KernelNode):
                self.held.update(
                    zip(node.step.writes, work(node, tuple(self.held[v] for v in node.step.reads)), strict=True)
                )
            elif isinstance(node, WhileNode):
                state = [self.held[v] for v in node.initial]
                for turn in range(TURNS + 1):
                    self.run(node.condition, state)
                    if turn < TURNS:
                        state = self.run(node.body, state)
                self.held.update(zip(node.state, state, strict=True))
            else:
                k = self.held[node.selector] % len(node.branches)
                arguments = [self.held[v] for v in node.arguments[k]]
                self.held.update(zip(node.results, self.run(node.branches[k], arguments), strict=True))
        return [self.held[v] for v in plan.results]


class Memory:
    """Runs a plan on its buffers; writing into a assign_offsets destroys everything that overlaps it."""

    def __init__(self, buffers: Buffers) -> None:
        self.buffers = buffers
        self.held: dict = {}  # (assign_offsets, bytes) -> contents
        self.names: dict = {}  # places that a loop calls by another name

    def write(self, at, nbytes: int, content: int) -> None:
        at = self.names.get(at, at)
        assert at.kind in ("arena", "output") or at.at in self.buffers.donations
        if at.kind == "arena":
            assert at.at >= 0
            assert at.at + nbytes <= self.buffers.arena_bytes
            gone = [
                k for k in self.held if k[0].kind == "arena" and k[0].at < at.at + nbytes and at.at < k[0].at + k[1]
            ]
        else:
            gone = [k for k in self.held if k[0] == at]
        for k in gone:
            del self.held[k]
        self.held[at, nbytes] = content

    def read(self, value: Value) -> int:
        return self.at(self.buffers.locations[value], value.shape.nbytes)

    def at(self, assign_offsets, nbytes: int) -> int:
        return self.held[self.names.get(assign_offsets, assign_offsets), nbytes]

    def copies(self, key, but=()) -> None:
        for copy in self.buffers.copies.get(key, ()):
            if copy not in but:
                self.write(copy.target, copy.nbytes, self.at(copy.source, copy.nbytes))

    def loop(self, node: WhileNode) -> None:
        self.copies((node, "enter", 0))
        swaps, outside = self.buffers.swaps.get(node, []), dict(self.names)
        for turn in range(TURNS + 1):
            self.nodes(node.condition.nodes)
            self.read(node.condition.results[0])
            if turn < TURNS:
                self.nodes(node.body.nodes)
                self.copies((node, "backedge", 0), swaps)
                for swap in swaps:
                    there, here = (self.names.get(p, p) for p in (swap.target, swap.source))
                    self.names[swap.target], self.names[swap.source] = here, there
        left = [(swap, self.at(swap.target, swap.nbytes)) for swap in swaps]
        self.names = outside
        for swap, content in left:
            self.write(swap.target, swap.nbytes, content)

    def nodes(self, nodes) -> None:
        for node in nodes:
            if isinstance(node, KernelNode):
                self.kernel(node)
            elif isinstance(node, WhileNode):
                self.loop(node)
            else:
                k = self.read(node.selector) % len(node.branches)
                self.nodes(node.branches[k].nodes)
                self.copies((node, "exit", k))

    def kernel(self, node: KernelNode) -> None:
        self.copies((node, "before", 0))
        step, places = node.step, self.buffers.locations
        must = {r: w for w, r in step.must_alias}
        allowed = {(w, r) for w, r in (*step.in_place, *step.must_alias)}
        read_at = [places[step.writes[must[r]]] if r in must else places[v] for r, v in enumerate(step.reads)]
        contents = tuple(self.at(at, v.shape.nbytes) for at, v in zip(read_at, step.reads, strict=True))
        write_at = [places[v] for v in step.writes]
        for w, r in step.must_alias:
            assert write_at[w] == read_at[r]
        for w, at in enumerate(write_at):
            for r, other in enumerate(read_at):
                assert at != other or (w, r) in allowed
        if node in self.buffers.scratch:
            self.write(self.buffers.scratch[node], step.kernel.scratch, -1)
        for at, v in zip(read_at, step.reads, strict=True):  # nothing written may lie across something read
            if at not in write_at:
                assert (self.names.get(at, at), v.shape.nbytes) in self.held
        for v, at, content in zip(step.writes, write_at, work(node, contents), strict=True):
            self.write(at, v.shape.nbytes, content)
        for v, at, content in zip(step.writes, write_at, work(node, contents), strict=True):
            assert self.at(at, v.shape.nbytes) == content


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize(
    "donated", [{}, {0: None, 1: None, 2: None}, {1: None}, {0: 2, 2: None}, {2: 0, 1: 3, 0: None}]
)
@pytest.mark.parametrize("swapped_from", [1, 1024])
@pytest.mark.parametrize("seed", range(40))
def test_shared_buffers_keep_live_values(seed, swapped_from, donated, monkeypatch):
    monkeypatch.setattr("cyxla.xla.cpu.memory.buffers.MIN_SWAP_BYTES", swapped_from)
    make = Maker(seed)
    parameters = [make.value() for _ in range(3)]
    plan = make.plan(parameters, [], [16, 32, 16, 16], 3)
    arguments = [hash(("argument", n)) for n in range(3)]
    want = Reference().run(plan, arguments)
    buffers = assign(plan, donated)
    memory = Memory(buffers)
    for value, content in zip(parameters, arguments, strict=True):
        memory.held[buffers.locations[value], value.shape.nbytes] = content
    memory.nodes(plan.nodes)
    memory.copies((plan, "return", 0))
    places = outputs(plan, buffers.donations)
    got = [memory.held[key] for key in ((p, v.shape.nbytes) for p, v in zip(places, plan.results, strict=True))]
    assert got == want
    left = {k: c for k, c in enumerate(arguments) if k not in buffers.donations}
    assert all(memory.at(Location("input", k), parameters[k].shape.nbytes) == c for k, c in left.items())
    fits = {k for k, n in donated.items() if n is not None and same_size(parameters[k], plan.results[n])}
    assert all(buffers.donations[k] == donated[k] for k in fits)
    sizes = Counter(v.shape.size for v in plan.results)
    wanted = Counter(parameters[k].shape.size for k in donated)
    if not any(donated.values()):
        assert Counter(parameters[k].shape.size for k in buffers.donations) == sizes & wanted


def outputs(plan: Plan, donations: dict) -> list:
    donors = {n: Location("input", k) for k, n in donations.items()}
    assert len(donors) == len(donations)
    return [donors.get(n, Location("output", n)) for n in range(len(plan.results))]


def test_a_chain_in_place_needs_no_arena():
    make = Maker(0)
    x, *chain = (make.value(16) for _ in range(10))
    nodes = [
        KernelNode(Step(Kernel("KERNEL"), (a,), (b,), ((0, 0),)))
        for a, b in zip([x, *chain], chain, strict=False)
    ]  # fmt: skip
    buffers = assign(Plan(make.computation, nodes, [x], [chain[-1]]))
    assert buffers.arena_bytes == 0
    assert {p.kind for v, p in buffers.locations.items() if v is not x} == {"output"}


def test_a_loop_updates_its_state_in_place():
    make = Maker(0)
    x, top, step, state, flag, at = (make.value(16) for _ in range(6))
    condition = Plan(make.computation, [KernelNode(Step(Kernel("c"), (at,), (flag,)))], [at], [flag])
    body = Plan(make.computation, [KernelNode(Step(Kernel("b"), (top,), (step,), (), ((0, 0),)))], [top], [step])
    loop = WhileNode([x], [state], condition, body)
    plan = Plan(make.computation, [loop], [x], [state])
    buffers = assign(plan)
    assert buffers.copies[loop, "backedge", 0] == []
    assert buffers.copies[plan, "return", 0] == []
    assert len(buffers.copies[loop, "enter", 0]) == 1
    assert buffers.arena_bytes == ALIGN  # the flag


@pytest.mark.parametrize("count", [0, 1, 30, 600])
def test_temporaries_alive_together_lie_apart(count):
    rng = random.Random(count)
    temporaries = []
    for _ in range(count):
        start = rng.randint(0, count)
        temporaries.append(Temporary(rng.choice((0, 1, 64, 100, 4096)), start, start + rng.randint(0, 9)))
    total = assign_offsets(temporaries)
    for n, a in enumerate(temporaries):
        assert a.offset % ALIGN == 0
        assert a.offset + a.nbytes <= total
        for b in temporaries[:n]:
            together = a.start <= b.end and b.start <= a.end
            assert not together or a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
