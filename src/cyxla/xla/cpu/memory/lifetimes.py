"""Live ranges of the arrays of a plan, as moments counted along the whole schedule.

Loops and branches are laid out one after the other. A value that a loop reads from outside is live until the loop
ends. The state of a loop has one buffer for all iterations: its contents at the start of an iteration, the next state
that the body computes, and the final state are three values that may share the buffer. Where contents are handed on
(into a loop, to the next iteration, out of a branch, into a result), there is a `Move`: no work if both sides share a
buffer, a copy otherwise. Events happen at even moments; a value written at one is live at least until the next odd one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import field

from cyxla.errors import InternalError
from cyxla.records import dataclass
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.plan.nodes import ConditionalNode, KernelNode, Node, Plan, WhileNode


class LiveRange:
    """Live range of one value in memory.

    Attributes
    ----------
    nbytes : int
        Size in bytes.
    start, end : int
        First and last moment at which the contents matter.
    fixed : bool
        True for an input that is not donated, and for a constant: memory that must not be written.
    value : Value or None
        Value in the memory; None for scratch, and for a branch's result before it is one.
    """

    __slots__ = ("end", "fixed", "nbytes", "start", "value")

    def __init__(self, value: Value | None, nbytes: int, start: int, *, fixed: bool = False) -> None:
        self.value, self.nbytes, self.start, self.end, self.fixed = value, nbytes, start, start, fixed


@dataclass(frozen=True)
class Move:
    """Move: at a moment, the contents of `source` become those of `target`, the result or state of some number."""

    target: LiveRange
    source: LiveRange
    moment: int
    number: int


@dataclass(frozen=True)
class Sharing:
    """Pair of arrays: a kernel may (or must) write `target` over `source`, if `reads_once`: it reads `source` once."""

    target: LiveRange
    source: LiveRange
    moment: int
    reads_once: bool


@dataclass
class LiveRanges:
    """Live ranges of all values of a plan, and the constraints between them.

    Attributes
    ----------
    by_value : dict of Value to LiveRange
        Live range of each value; a branch's parameter has that of its argument.
    computed : list of LiveRange
        Live ranges that get a buffer here, in order of definition.
    same_buffer : list of (LiveRange, LiveRange)
        Pairs that always share a buffer.
    must_share : dict of Node to list of Sharing
        Pairs that a kernel requires in one buffer.
    moves : dict of (Node or Plan, str, int) to list of Move
        Moves by position: ``(while, "enter", 0)``, ``(while, "backedge", 0)``, ``(conditional, "exit", branch)``,
        ``(plan, "return", 0)``.
    may_share : list of Sharing
        Pairs for which a kernel can work in place.
    scratch : dict of Node to LiveRange
        Working memory of kernels.
    loop_starts : dict of Node to int
        Moments at which loops begin.
    """

    by_value: dict[Value, LiveRange] = field(default_factory=dict)
    computed: list[LiveRange] = field(default_factory=list)
    same_buffer: list[tuple[LiveRange, LiveRange]] = field(default_factory=list)
    must_share: dict[Node, list[Sharing]] = field(default_factory=dict)
    moves: dict[tuple[Node | Plan, str, int], list[Move]] = field(default_factory=dict)
    may_share: list[Sharing] = field(default_factory=list)
    scratch: dict[Node, LiveRange] = field(default_factory=dict)
    loop_starts: dict[Node | Plan, int] = field(default_factory=dict)


def live_ranges(entry: Plan, donated: Collection[int] = ()) -> LiveRanges:
    """Return the live ranges of a plan, of which some inputs are donated."""
    return _Walk().entry(entry, donated)


class _Loop:
    """Enclosing loop of the walk: the values that it reads from outside are live until its end."""

    __slots__ = ("outer_ranges", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.outer_ranges: list[LiveRange] = []


class _Walk:
    def __init__(self) -> None:
        self.ranges = LiveRanges()
        self.now = 0
        self.loops: list[_Loop] = []

    def entry(self, plan: Plan, donated: Collection[int]) -> LiveRanges:
        for n, value in enumerate(plan.parameters):
            self.ranges.by_value[value] = LiveRange(value, value.shape.nbytes, -1, fixed=n not in donated)
        self.nodes(plan.nodes)
        end = self.tick()
        moves = self.ranges.moves[plan, "return", 0] = []
        for n, value in enumerate(plan.results):
            moves.append(Move(LiveRange(None, value.shape.nbytes, end), self.read(value, end), end, n))
        return self.ranges

    def tick(self) -> int:
        self.now += 2
        return self.now

    def life(self, value: Value) -> LiveRange:
        life = self.ranges.by_value.get(value)
        if life is None:
            if value.instruction.opcode != "constant":
                raise InternalError("a value is read before anything computes it", where=repr(value.instruction))
            life = self.ranges.by_value[value] = LiveRange(value, value.shape.nbytes, -1, fixed=True)
        return life

    def read(self, value: Value, moment: int) -> LiveRange:
        return self.extend(self.life(value), moment)

    def extend(self, life: LiveRange, moment: int) -> LiveRange:
        life.end = max(life.end, moment)
        for loop in self.loops:  # outermost first
            if life.start < loop.start:
                loop.outer_ranges.append(life)
                break
        return life

    def define(self, value: Value | None, nbytes: int, moment: int) -> LiveRange:
        life = LiveRange(value, nbytes, moment)
        life.end = moment + 1  # even if nobody reads it, so that results of one kernel do not overlap
        self.ranges.computed.append(life)
        if value is not None:
            self.ranges.by_value[value] = life
        return life

    def nodes(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if isinstance(node, KernelNode):
                self.kernel(node)
            elif isinstance(node, WhileNode):
                self.loop(node)
            else:
                self.branches(node)

    def kernel(self, node: KernelNode) -> None:
        now, step = self.tick(), node.step
        reads = [self.read(v, now) for v in step.reads]
        writes = [self.define(v, v.shape.nbytes, now) for v in step.writes]
        if step.kernel.scratch:
            self.ranges.scratch[node] = self.define(None, step.kernel.scratch, now)
        for pairs, sharings in (
            (step.must_alias, self.ranges.must_share.setdefault(node, [])),
            (step.in_place, self.ranges.may_share),
        ):
            sharings += [
                Sharing(writes[w], reads[r], now, sum(other is reads[r] for other in reads) == 1) for w, r in pairs
            ]

    def loop(self, node: WhileNode) -> None:
        enter = self.ranges.loop_starts[node] = self.tick()
        initial = [self.read(v, enter) for v in node.initial]
        is_unchanged = [r == p for r, p in zip(node.body.results, node.body.parameters, strict=True)]
        states: list[LiveRange] = []  # the state at the start of an iteration
        for n, value in enumerate(node.state):
            # An element that the body passes through unchanged is the initial value in every iteration.
            state = initial[n] if is_unchanged[n] else self.define(None, value.shape.nbytes, enter)
            states.append(state)
            self.ranges.by_value[node.condition.parameters[n]] = self.ranges.by_value[node.body.parameters[n]] = state
        carried = [n for n, unchanged in enumerate(is_unchanged) if not unchanged]
        self.ranges.moves[node, "enter", 0] = [Move(states[n], initial[n], enter, n) for n in carried]
        self.loops.append(_Loop(enter))
        self.nodes(node.condition.nodes)
        test = self.tick()
        self.read(node.condition.results[0], test)
        for n in carried:  # the final state if the loop ends here
            self.extend(states[n], test)
        self.nodes(node.body.nodes)
        backedge = self.tick()
        next_states = {n: self.read(node.body.results[n], backedge) for n in carried}
        for life in self.loops.pop().outer_ranges:
            self.extend(life, backedge)
        moves = self.ranges.moves[node, "backedge", 0] = []
        for n, value in enumerate(node.state):
            if is_unchanged[n]:
                self.ranges.by_value[value] = states[n]
            else:
                next_state = self.define(value, value.shape.nbytes, backedge)
                self.ranges.same_buffer.append((states[n], next_state))
                moves.append(Move(next_state, next_states[n], backedge, n))

    def branches(self, node: ConditionalNode) -> None:
        enter = self.tick()
        self.read(node.selector, enter)
        arguments = [[self.read(v, enter) for v in values] for values in node.arguments]
        branch_results: list[list[tuple[LiveRange, int]]] = []
        for branch, values in zip(node.branches, arguments, strict=True):
            self.ranges.by_value.update(zip(branch.parameters, values, strict=True))
            self.nodes(branch.nodes)
            moment = self.tick()
            branch_results.append([(self.read(v, moment), moment) for v in branch.results])
        end = self.tick()
        results = [self.define(v, v.shape.nbytes, end) for v in node.results]
        for k, ranges in enumerate(branch_results):
            moves = self.ranges.moves[node, "exit", k] = []
            for n, (result, (source, moment)) in enumerate(zip(results, ranges, strict=True)):
                # The result at the end of one branch; the other branches do not run.
                branch_end = self.define(None, result.nbytes, moment)
                self.ranges.same_buffer.append((result, branch_end))
                moves.append(Move(branch_end, source, moment, n))
