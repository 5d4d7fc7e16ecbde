"""Live ranges of the arrays of a plan, as moments counted along the whole schedule.

Loops and branches are laid out in a row. A value that a loop reads from outside is needed until the loop ends; the
state of a loop has one memory for all turns, so what it holds at the top, what the body makes of it and what
remains at the end are three values that may share it. Where contents change hands (into a loop, around it, out of a
branch, into a result), there is a `Move`: no work if both sides end up in one place, a copy otherwise. Things
happen at even moments; what is written at one lasts at least to the next odd one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from cyxla.errors import InternalError
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.plan.nodes import ConditionalNode, KernelNode, Node, Plan, WhileNode


class LiveRange:
    """One value in memory: when it is needed, and whose memory it is.

    Attributes
    ----------
    nbytes : int
        Size.
    start, end : int
        First and last moment at which its contents matter.
    fixed : bool
        An input that is not donated, or a constant: memory that nobody may write.
    value : Value or None
        Which value it is; None for the memory of a branch's result before it is one, or scratch.
    """

    __slots__ = ("end", "fixed", "nbytes", "start", "value")

    def __init__(self, value: Value | None, nbytes: int, start: int, *, fixed: bool = False) -> None:
        self.value, self.nbytes, self.start, self.end, self.fixed = value, nbytes, start, start, fixed


@dataclass(frozen=True)
class Move:
    """At a moment, what `source` holds becomes what `target` holds."""

    target: LiveRange
    source: LiveRange
    moment: int


@dataclass(frozen=True)
class Sharing:
    """At a moment, a kernel may (or must) write `target` over `source`, if it is `alone`: read in one place only."""

    target: LiveRange
    source: LiveRange
    moment: int
    alone: bool


@dataclass
class LiveRanges:
    """All of a plan's values, and what ties them together.

    Attributes
    ----------
    lives : dict of Value to LiveRange
        Several values may have one life: a branch's parameter is its argument.
    computed : list of LiveRange
        Those whose memory is ours to choose, in order of definition.
    forced : list of (LiveRange, LiveRange)
        Pairs that are one memory whatever happens.
    musts : dict of Node to list of Sharing
        What a kernel has to find in place of its result.
    moves : dict of (Node or Plan, str, int) to list of Move
        By place: ``(while, "enter", 0)``, ``(while, "again", 0)``, ``(conditional, "leave", branch)``,
        ``(plan, "return", 0)``.
    may : list of Sharing
        Where a kernel can work in place.
    scratch : dict of Node to LiveRange
        Working memory of kernels.
    starts : dict of Node to int
        The moments at which loops begin.
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
    """Follow a plan from its inputs, of which some are donated, to its results."""
    return _Walk().entry(entry, donated)


class _Loop:
    """A loop that is being walked: what it reads from outside is needed to its end."""

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
