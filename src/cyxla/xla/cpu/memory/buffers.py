"""Buffer assignment: each array of a plan is an argument, a result, a constant, or in the arena."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from cyxla import config
from cyxla.records import dataclass
from cyxla.types import Literal
from cyxla.xla.cpu.kernel.kernel import STATE_BYTES, Value
from cyxla.xla.cpu.memory import donations
from cyxla.xla.cpu.memory.arena import Temporary, assign_guarded_offsets, assign_offsets
from cyxla.xla.cpu.memory.lifetimes import LiveRange, LiveRanges, Move, live_ranges
from cyxla.xla.cpu.memory.live_parts import LivePart, final_parts, part_of
from cyxla.xla.cpu.memory.locations import Location, MemoryKind
from cyxla.xla.cpu.plan.nodes import Node, Plan, WhileNode


class Copy(NamedTuple):
    """Copy of bytes from one location to another, or of the part of an array that is read."""

    target: Location
    source: Location
    nbytes: int
    part: LivePart | None = None


@dataclass
class Buffers:
    """Buffer assignment of a plan.

    Attributes
    ----------
    locations : dict of Value to Location
        Location of every array that some kernel reads or writes.
    scratch : dict of Node to Location
        Scratch buffers of kernels.
    copies : dict of (Node or Plan, str, int) to list of Copy
        Copies by position, in order: ``(kernel, "before", 0)``, ``(while, "enter", 0)``, ``(while, "backedge", 0)``,
        ``(conditional, "exit", branch)``, ``(plan, "return", 0)``.
    constants : list of Literal
        Contents of the constant buffers.
    inputs, outputs : int
        Number of buffers of each kind in a call.
    arena_bytes : int
        Size of the arena.
    state : Location or None
        Location of the state of the random numbers, if there is one.
    usable_ranges : list of (int, int)
        Offset and size of the usable ranges of the arena, where the address sanitizer guards the rest.
    swaps : dict of Node to list of Copy
        Copies among those of ``(while, "backedge", 0)`` that swapping two pointers can replace.
    donations : dict of int to int
        Inputs whose memory is that of a result, each with the number of the result; both have the input's location.
    """

    locations: dict[Value, Location] = field(default_factory=dict)
    scratch: dict[Node, Location] = field(default_factory=dict)
    copies: dict[tuple[Node | Plan, str, int], list[Copy]] = field(default_factory=dict)
    constants: list[Literal] = field(default_factory=list)
    inputs: int = 0
    outputs: int = 0
    arena_bytes: int = 0
    state: Location | None = None
    usable_ranges: list[tuple[int, int]] = field(default_factory=list)
    swaps: dict[Node, list[Copy]] = field(default_factory=dict)
    donations: dict[int, int] = field(default_factory=dict)


MIN_SWAP_BYTES = 1024  # size from which pointers are swapped rather than bytes copied in every iteration


class _Allocation:
    """Buffer shared by some live ranges.

    Attributes
    ----------
    spans : list of (int, int)
        Moments at which it is in use, sorted and disjoint.
    begins, ends : dict of int to LiveRange
        Live ranges by first and by last moment.
    output : int
        Number of the result that it is, or -1.
    input : int
        Number of the donated argument that it is, or -1.
    """

    __slots__ = ("begins", "ends", "fixed", "input", "live_ranges", "nbytes", "output", "spans", "temporary")

    def __init__(self, life: LiveRange) -> None:
        self.live_ranges = [life]
        self.nbytes = life.nbytes
        self.spans = [(life.start, life.end)]
        self.begins, self.ends = {life.start: life}, {life.end: life}
        self.fixed = life.fixed
        self.output = self.input = -1
        self.temporary: Temporary | None = None

    def absorb(self, other: _Allocation) -> None:
        """Take over the live ranges of another buffer."""
        self.live_ranges += other.live_ranges
        self.spans = _merged(self.spans, other.spans)
        self.begins |= other.begins
        self.ends |= other.ends
        self.output = max(self.output, other.output)
        self.input = max(self.input, other.input)


def assign(plan: Plan, donated: Mapping[int, int | None] | None = None) -> Buffers:
    """Assign a location to every array of an entry's plan.

    Parameters
    ----------
    plan : Plan
        Plan of the entry computation.
    donated : mapping of int to (int or None), optional
        Numbers of inputs whose memory becomes that of a result: of the one given, or of any of equal size. Inputs
        without a result are not reused.
    """
    usable = donations.usable(donated or {}, plan)
    return _Assignment(plan, live_ranges(plan, usable), usable).run()


class _Assignment:
    def __init__(self, plan: Plan, ranges: LiveRanges, donated: Mapping[int, int | None]) -> None:
        self.plan, self.ranges, self.donated = plan, ranges, donated
        self.memory: dict[LiveRange, _Allocation] = {}
        self.handovers: set[tuple[LiveRange | None, LiveRange | None]] = set()
        self.buffers = Buffers(inputs=len(plan.parameters), outputs=len(plan.results))

    def run(self) -> Buffers:
        for life in {id(v): v for v in (*self.ranges.by_value.values(), *self.ranges.computed)}.values():
            self.memory[life] = _Allocation(life)
        for number in self.donated:
            self.donated_buffer(number).input = number
        self.share_buffers()
        self.allocate_arena()
        self.locate_values()
        self.order_copies()
        return self.buffers

    # --- shared buffers, the most useful sharings first ---------------------------------------------------------------

    def share_buffers(self) -> None:
        ranges = self.ranges
        required = [s for sharings in ranges.must_share.values() for s in sharings]
        moves = {
            position: [m for key, ms in ranges.moves.items() if key[1] == position for m in ms]
            for position in ("backedge", "exit", "enter")
        }
        # Where contents are handed over, the second array may begin in the same buffer when the first one ends.
        self.handovers = {(s.source, s.target) for s in (*required, *ranges.may_share) if s.reads_once}
        self.handovers |= {(m.source, m.target) for ms in moves.values() for m in ms}
        for a, b in ranges.same_buffer:
            self.merge(self.memory[a], self.memory[b])
        for s in required:
            self.try_merge(s.target, s.source)
        for m in (*moves["backedge"], *moves["exit"], *moves["enter"]):  # copies in every iteration first
            self.try_merge(m.target, m.source)
        self.donate_to_named()
        named = {n for n in self.donated.values() if n is not None}
        for number, m in enumerate(ranges.moves[self.plan, "return", 0]):
            memory = self.memory[m.source]
            is_free = not memory.fixed and memory.output < 0 and number not in named
            if is_free and memory.nbytes == m.target.nbytes:
                memory.output = number
        self.find_swaps()
        for s in ranges.may_share:
            self.try_merge(s.target, s.source)
        self.donate_to_others()
        self.buffers.donations = {n: self.donated_buffer(n).output for n in self.donated}

    # --- donated arguments: each becomes the memory of a result, at worst by a copy at the end ------------------------

    def donated_buffer(self, number: int) -> _Allocation:
        return self.memory[self.ranges.by_value[self.plan.parameters[number]]]

    def donate_to_named(self) -> None:
        """Assign the memory of donated arguments to the results named for them, before it is used otherwise."""
        returned = self.ranges.moves[self.plan, "return", 0]
        for number, result in self.donated.items():
            if result is not None:
                self.donate(number, result, self.memory[returned[result].source])

    def donate_to_others(self) -> None:
        """Match the donated arguments that are no result by in-place work with the remaining results."""
        unassigned = [n for n in self.donated if self.donated_buffer(n).output < 0]
        owners = {memory.output: memory for memory in self.memory.values() if memory.output >= 0}
        open_results = [n for n in range(self.buffers.outputs) if n not in owners or owners[n].input < 0]
        for number, result in donations.match_results(self.plan, unassigned, open_results).items():
            self.donate(number, result, owners.get(result))

    def donate(self, number: int, result: int, owner: _Allocation | None) -> None:
        """Make the memory of a donated argument that of a result, and if possible of the value that becomes it."""
        donated = self.donated_buffer(number)
        if owner is not None and owner is not donated and not owner.fixed:
            if owner.input < 0 and owner.nbytes == donated.nbytes and self.disjoint(owner, donated):
                self.merge(owner, donated)
            elif owner.output == result:
                owner.output = -1
        self.donated_buffer(number).output = result

    def find_swaps(self) -> None:
        """Let two buffers alternate where the state of a loop and the next state cannot share one (double buffering).

        No other array may use either buffer while the loop runs.
        """
        self.swapped: list[tuple[Node | Plan, Move]] = []
        for key, moves in self.ranges.moves.items():
            if key[1] != "backedge" or not moves:
                continue
            enter = self.ranges.loop_starts[key[0]]
            targets = Counter(id(self.memory[m.target]) for m in moves)
            sources = Counter(id(self.memory[m.source]) for m in moves)
            for m in moves:
                target, source = self.memory[m.target], self.memory[m.source]
                is_one_to_one = targets[id(target)] == sources[id(source)] == 1
                if not is_one_to_one or targets[id(source)] or sources[id(target)] or m.source.start <= enter:
                    continue
                if source.fixed or target.fixed or source.nbytes != target.nbytes or source.nbytes < MIN_SWAP_BYTES:
                    continue
                self.swapped.append((key[0], m))
                for memory in (target, source):
                    memory.spans = _merged(memory.spans, [(enter, m.moment)])

    def try_merge(self, target: LiveRange, source: LiveRange) -> None:
        a, b = self.memory[source], self.memory[target]
        if a is b or a.fixed or b.fixed or a.nbytes != b.nbytes:
            return
        if (a.output >= 0 and b.output >= 0) or (a.input >= 0 and b.input >= 0):
            return
        if (source, target) in self.handovers and self.disjoint(a, b):
            self.merge(a, b)

    def disjoint(self, a: _Allocation, b: _Allocation) -> bool:
        """Return whether two buffers are never in use at once, except at moments when contents are handed on."""
        i = j = 0
        while i < len(a.spans) and j < len(b.spans):
            (a_start, a_end), (b_start, b_end) = a.spans[i], b.spans[j]
            low, high = max(a_start, b_start), min(a_end, b_end)
            if low < high or (
                low == high and not (self.hands_over(a, b, low) if a_end == low else self.hands_over(b, a, low))
            ):
                return False
            if a_end < b_end:
                i += 1
            else:
                j += 1
        return True

    def hands_over(self, before: _Allocation, after: _Allocation, moment: int) -> bool:
        """Return whether the live range that ends in one buffer at a moment becomes one that begins in the other."""
        ending, beginning = before.ends.get(moment), after.begins.get(moment)
        return (ending, beginning) in self.handovers

    def merge(self, a: _Allocation, b: _Allocation) -> None:
        if a is b:
            return
        if len(a.live_ranges) < len(b.live_ranges):
            a, b = b, a
        a.absorb(b)
        for life in b.live_ranges:
            self.memory[life] = a

    # --- locations --------------------------------------------------------------------------------------------------

    def allocate_arena(self) -> None:
        temporaries = []
        for memory in dict.fromkeys(self.memory[life] for life in self.ranges.computed):
            if memory.output < 0 and memory.input < 0:
                memory.temporary = Temporary(memory.nbytes, memory.spans[0][0], memory.spans[-1][1])
                temporaries.append(memory.temporary)
        self.spare_buffers = self.reserve_spare_buffers(temporaries)
        guarded = "address" in config.get("SANITIZE")
        self.buffers.arena_bytes = assign_guarded_offsets(temporaries) if guarded else assign_offsets(temporaries)
        if self.plan.has_state:  # at the end, for the whole call
            self.buffers.state = Location(MemoryKind.ARENA, -(-self.buffers.arena_bytes // 64) * 64)
            self.buffers.arena_bytes = self.buffers.state.at + STATE_BYTES
            temporaries.append(Temporary(STATE_BYTES, 0, 0, self.buffers.state.at))
        self.buffers.usable_ranges = [(t.offset, t.nbytes) for t in temporaries] if guarded else []

    def reserve_spare_buffers(self, temporaries: list[Temporary]) -> dict[tuple[Node | Plan, str, int], Temporary]:
        """Reserve a spare buffer for cycles of copies: of a loop's state, or of donated arguments and results."""
        reserved = {}
        for key, moves in self.ranges.moves.items():
            if key[1] == "return":
                targets = {n: self.donated_buffer(k) for k, n in self.buffers.donations.items()}
            elif key[1] == "backedge":
                targets = {n: self.memory[m.target] for n, m in enumerate(moves)}
            else:
                continue
            written = {id(target) for n, target in targets.items() if self.memory[moves[n].source] is not target}
            crossing = [m for m in moves if id(self.memory.get(m.source)) in written]
            if crossing:
                moment = moves[0].moment
                reserved[key] = Temporary(max(m.source.nbytes for m in crossing), moment, moment)
                temporaries.append(reserved[key])
        return reserved

    def locate_values(self) -> None:
        inputs = {value: n for n, value in enumerate(self.plan.parameters)}
        constants: dict[Literal, int] = {}
        for value, life in self.ranges.by_value.items():
            if life.fixed and life.value is not None and life.value not in inputs:
                literal = _literal(life.value)
                number = constants.setdefault(literal, len(constants))
                self.buffers.locations[value] = Location(MemoryKind.CONSTANT, number)
            elif life.fixed and life.value is not None:
                self.buffers.locations[value] = Location(MemoryKind.INPUT, inputs[life.value])
            else:
                self.buffers.locations[value] = self.location_of(life)
        self.buffers.constants = list(constants)
        self.buffers.scratch = {node: self.location_of(life) for node, life in self.ranges.scratch.items()}

    def location_of(self, life: LiveRange) -> Location:
        if life.fixed:
            assert life.value is not None
            return self.buffers.locations[life.value]
        memory = self.memory[life]
        if memory.input >= 0:
            return Location(MemoryKind.INPUT, memory.input)
        if memory.output >= 0:
            return Location(MemoryKind.OUTPUT, memory.output)
        assert memory.temporary is not None
        return Location(MemoryKind.ARENA, memory.temporary.offset)

    # --- copies -----------------------------------------------------------------------------------------------------

    def order_copies(self) -> None:
        copies = self.buffers.copies
        for node, sharings in self.ranges.must_share.items():
            copies[node, "before", 0] = _without_noops(
                [Copy(self.location_of(s.target), self.location_of(s.source), s.source.nbytes) for s in sharings]
            )
        returned = {n: Location(MemoryKind.OUTPUT, n) for n in range(self.buffers.outputs)}
        returned |= {n: Location(MemoryKind.INPUT, k) for k, n in self.buffers.donations.items()}
        for key, moves in self.ranges.moves.items():
            part, outputs = part_of(key, self.buffers.locations), returned if key[1] == "return" else None
            targets = [self.location_of(m.target) if outputs is None else outputs[m.number] for m in moves]
            needed = [
                Copy(target, self.location_of(m.source), m.source.nbytes, part(m.number))
                for target, m in zip(targets, moves, strict=True)
            ]
            if key[1] == "backedge" and isinstance(key[0], WhileNode):
                self.keep_swaps(key[0])
            spare = self.spare_buffers.get(key)
            copies[key] = _sequence(_without_noops(needed), Location(MemoryKind.ARENA, spare.offset) if spare else None)

    def keep_swaps(self, node: WhileNode) -> None:
        """Keep the copies at the end of an iteration that swaps replace; after the loop, one may be needed."""
        part = final_parts(node, self.buffers.locations)
        swaps = [
            Copy(self.location_of(m.target), self.location_of(m.source), m.source.nbytes, part(m.number))
            for other, m in self.swapped
            if other is node
        ]
        if swaps:
            self.buffers.swaps[node] = swaps


def _literal(value: Value) -> Literal:
    literal: Literal = value.instruction.attrs["literal"]
    for i in value.index:
        literal = literal.elements[i]
    return literal


def _without_noops(copies: Sequence[Copy]) -> list[Copy]:
    return [c for c in copies if c.target != c.source and c.nbytes]


def _sequence(copies: list[Copy], spare: Location | None) -> list[Copy]:
    """Order simultaneous copies so that none overwrites the source of a later one; `spare` breaks cycles."""
    ordered: list[Copy] = []
    waiting = list(copies)
    while waiting:
        sources = {c.source for c in waiting}
        ready = [c for c in waiting if c.target not in sources]
        if not ready:
            # Every target is also a source: save one, and read the saved copy instead.
            assert spare is not None, "a cycle of copies outside a loop"
            saved = waiting[0].target
            ordered.append(Copy(spare, saved, waiting[0].nbytes))
            waiting = [c._replace(source=spare) if c.source == saved else c for c in waiting]
            continue
        ordered += ready
        done = set(ready)
        waiting = [c for c in waiting if c not in done]
    return ordered


Spans = list[tuple[int, int]]


def _merged(a: Spans, b: Spans) -> Spans:
    merged: Spans = []
    for start, end in sorted(a + b):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
