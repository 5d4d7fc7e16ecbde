"""Live ranges of the arrays of a plan, as moments counted along the whole schedule.

Loops and branches are laid out one after the other. A value that a loop reads from outside is live until the loop
ends. The state of a loop has one buffer for all iterations: its contents at the start of an iteration, the next state
that the body computes, and the final state are three values that may share the buffer. Where contents are handed on
(into a loop, to the next iteration, out of a branch, into a result), there is a `Move`: no work if both sides share a
buffer, a copy otherwise. Events happen at even moments; a value written at one is live at least until the next odd one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from cyxla.errors import InternalError
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
    """Move: at a moment, the contents of `source` become those of `target`."""

    target: LiveRange
    source: LiveRange
    moment: int


@dataclass(frozen=True)
class Sharing:
    """Pair of arrays: a kernel may (or must) write `target` over `source`, if it is `alone`: read only once."""

    target: LiveRange
    source: LiveRange
    moment: int
    alone: bool


@dataclass
class LiveRanges:
    """Live ranges of all values of a plan, and the constraints between them.

    Attributes
    ----------
    lives : dict of Value to LiveRange
        Live range of each value; a branch's parameter has that of its argument.
    computed : list of LiveRange
        Live ranges that get a buffer here, in order of definition.
    forced : list of (LiveRange, LiveRange)
        Pairs that always share a buffer.
    musts : dict of Node to list of Sharing
        Pairs that a kernel requires in one buffer.
    moves : dict of (Node or Plan, str, int) to list of Move
        Moves by position: ``(while, "enter", 0)``, ``(while, "again", 0)``, ``(conditional, "leave", branch)``,
        ``(plan, "return", 0)``.
    may : list of Sharing
        Pairs for which a kernel can work in place.
    scratch : dict of Node to LiveRange
        Working memory of kernels.
    starts : dict of Node to int
        Moments at which loops begin.
    """

    lives: dict[Value, LiveRange] = field(default_factory=dict)
    computed: list[LiveRange] = field(default_factory=list)
    forced: list[tuple[LiveRange, LiveRange]] = field(default_factory=list)
    musts: dict[Node, list[Sharing]] = field(default_factory=dict)
    moves: dict[tuple[Node | Plan, str, int], list[Move]] = field(default_factory=dict)
    may: list[Sharing] = field(default_factory=list)
    scratch: dict[Node, LiveRange] = field(default_factory=dict)
    starts: dict[Node | Plan, int] = field(default_factory=dict)


def live_ranges(entry: Plan, donated: Collection[int] = ()) -> LiveRanges:
    """Return the live ranges of a plan, of which some inputs are donated."""
    return _Walk().entry(entry, donated)


class _Loop:
    """Enclosing loop of the walk: the values that it reads from outside are live until its end."""

    __slots__ = ("start", "touched")

    def __init__(self, start: int) -> None:
        self.start = start
        self.touched: list[LiveRange] = []


class _Walk:
    def __init__(self) -> None:
        self.found = LiveRanges()
        self.now = 0
        self.loops: list[_Loop] = []

    def entry(self, plan: Plan, donated: Collection[int]) -> LiveRanges:
        for n, value in enumerate(plan.parameters):
            self.found.lives[value] = LiveRange(value, value.shape.nbytes, -1, fixed=n not in donated)
        self.nodes(plan.nodes)
        end = self.tick()
        moves = self.found.moves[plan, "return", 0] = []
        for value in plan.results:
            moves.append(Move(LiveRange(None, value.shape.nbytes, end), self.read(value, end), end))
        return self.found

    def tick(self) -> int:
        self.now += 2
        return self.now

    def life(self, value: Value) -> LiveRange:
        found = self.found.lives.get(value)
        if found is None:
            if value.instruction.opcode != "constant":
                raise InternalError("a value is read before anything computes it", where=repr(value.instruction))
            found = self.found.lives[value] = LiveRange(value, value.shape.nbytes, -1, fixed=True)
        return found

    def read(self, value: Value, moment: int) -> LiveRange:
        return self.need(self.life(value), moment)

    def need(self, life: LiveRange, moment: int) -> LiveRange:
        life.end = max(life.end, moment)
        for loop in self.loops:  # outermost first
            if life.start < loop.start:
                loop.touched.append(life)
                break
        return life

    def define(self, value: Value | None, nbytes: int, moment: int) -> LiveRange:
        life = LiveRange(value, nbytes, moment)
        life.end = moment + 1  # even if nobody reads it: what else is written now must lie elsewhere
        self.found.computed.append(life)
        if value is not None:
            self.found.lives[value] = life
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
            self.found.scratch[node] = self.define(None, step.kernel.scratch, now)
        for pairs, found in ((step.must_alias, self.found.musts.setdefault(node, [])), (step.in_place, self.found.may)):
            found += [
                Sharing(writes[w], reads[r], now, sum(other is reads[r] for other in reads) == 1) for w, r in pairs
            ]

    def loop(self, node: WhileNode) -> None:
        enter = self.found.starts[node] = self.tick()
        initial = [self.read(v, enter) for v in node.initial]
        kept = [r == p for r, p in zip(node.body.results, node.body.parameters, strict=True)]
        tops: list[LiveRange] = []  # the state as condition and body find it
        for n, value in enumerate(node.state):
            # What the body hands on as it is needs no memory: it is the initial value, all along.
            top = initial[n] if kept[n] else self.define(None, value.shape.nbytes, enter)
            tops.append(top)
            self.found.lives[node.condition.parameters[n]] = self.found.lives[node.body.parameters[n]] = top
        carried = [n for n, same in enumerate(kept) if not same]
        self.found.moves[node, "enter", 0] = [Move(tops[n], initial[n], enter) for n in carried]
        self.loops.append(_Loop(enter))
        self.nodes(node.condition.nodes)
        test = self.tick()
        self.read(node.condition.results[0], test)
        for n in carried:  # the loop may end here, with this state
            self.need(tops[n], test)
        self.nodes(node.body.nodes)
        again = self.tick()
        made = {n: self.read(node.body.results[n], again) for n in carried}
        for life in self.loops.pop().touched:
            self.need(life, again)
        moves = self.found.moves[node, "again", 0] = []
        for n, value in enumerate(node.state):
            if kept[n]:
                self.found.lives[value] = tops[n]
            else:
                next_top = self.define(value, value.shape.nbytes, again)
                self.found.forced.append((tops[n], next_top))
                moves.append(Move(next_top, made[n], again))

    def branches(self, node: ConditionalNode) -> None:
        enter = self.tick()
        self.read(node.selector, enter)
        arguments = [[self.read(v, enter) for v in values] for values in node.arguments]
        leaves: list[list[tuple[LiveRange, int]]] = []
        for branch, values in zip(node.branches, arguments, strict=True):
            self.found.lives.update(zip(branch.parameters, values, strict=True))
            self.nodes(branch.nodes)
            leave = self.tick()
            leaves.append([(self.read(v, leave), leave) for v in branch.results])
        end = self.tick()
        results = [self.define(v, v.shape.nbytes, end) for v in node.results]
        for k, made in enumerate(leaves):
            moves = self.found.moves[node, "leave", k] = []
            for result, (source, leave) in zip(results, made, strict=True):
                # The result's memory as one branch leaves it; the other branches do not run.
                left = self.define(None, result.nbytes, leave)
                self.found.forced.append((result, left))
                moves.append(Move(left, source, leave))
