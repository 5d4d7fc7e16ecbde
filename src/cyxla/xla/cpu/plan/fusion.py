"""Fusion: groups of instructions over one iteration space, found in a sweep from results to parameters.

An instruction is computed inside the groups of its readers where that is correct and cheap; otherwise its result is
stored, by a group that iterates over the same elements or by a group of its own. `Group.reasons` holds the instructions
that a group did not take in, `Group.stored` the reason for each stored result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from itertools import pairwise
from math import prod
from typing import TypeAlias

from cyxla.records import dataclass
from cyxla.xla.cpu.emitters import fusible
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.cumulative_windows import prefix
from cyxla.xla.cpu.kernel.groups import CONTRACTIONS, MOVEMENT, ROOTS, Group, GroupKind, is_loopable, is_static
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import is_forwarding, is_read, leaves, resolve
from cyxla.xla.cpu.plan.masks import mask_of
from cyxla.xla.cpu.plan.row_groups import merge_rows
from cyxla.xla.cpu.plan.updates import is_updated_box
from cyxla.xla.cpu.reduce.window_size import is_elementwise_select_and_scatter
from cyxla.xla.cpu.sort.contents import reads_operand
from cyxla.xla.hlo import OPCODES, Computation, Instruction
from cyxla.xla.hlo.attributes import Window
from cyxla.xla.service.refusal import Refusal

MAX_INSTRUCTIONS = 200
MAX_COSTLY = 50  # transcendental functions and the like in one group, a bound on gcc's time
MAX_OUTPUTS = 8
MAX_MERGED = 4  # readers of one instruction that are merged into one group
MAX_COPIES = 8  # copies of one instruction in one body
MAX_RECOMPUTED = 16  # operations per element that an instruction and its operands may repeat for a large array
_SMALL_ARRAY = 2048  # elements that may be recomputed any number of times
_LONG_ROW = 256  # trip count of an inner loop from which values hoisted out of it cost nothing
_MAX_VISITS = 400

_REDUCTIONS = frozenset({"reduce", "reduce-window"})  # with an epilogue
#: Kinds of the groups of opcodes that are not single instructions.
_KINDS = {
    "convolution": GroupKind.CONVOLUTION, "dot": GroupKind.DOT, "dynamic-update-slice": GroupKind.UPDATE,
    "reduce": GroupKind.REDUCE, "reduce-window": GroupKind.REDUCE_WINDOW,
}  # fmt: skip
_PERMUTING = frozenset({"transpose", "reverse", "gather"})  # opcodes that an epilogue does not take
_LEAVES = frozenset({"parameter", "constant"})


def fuse(
    computation: Computation,
    *,
    materialised: Mapping[Instruction, str] | None = None,
    sizes: AbstractSet[Instruction] = frozenset(),
    repeated: bool = False,
) -> list[Group]:
    """Partition a computation into groups, in an order in which they can run.

    Parameters
    ----------
    computation : Computation
        Computation without calls and fusions.
    materialised : mapping of Instruction to str, optional
        Instructions whose results must be in memory, besides the computation's own result, with the reason.
    sizes : set of Instruction
        Instructions that compute numbers of live elements. A group that reads one does not compute it, so that its
        loops can stop there.
    repeated : bool
        True inside a loop: an update in place then reads what it overwrites itself, rather than from a copy.
    """
    return Fuser(computation, materialised or {}, sizes, repeated=repeated).run()


# --------------------------------------------------------------------------------------------------------------- sweep
_FUSED = frozenset(GroupKind) - {GroupKind.ROW, GroupKind.SINGLE}
_CONTRACTIONS = frozenset({GroupKind.CONVOLUTION, GroupKind.DOT})
_BEFORE_CONTRACTIONS = frozenset({GroupKind.LOOP, GroupKind.REDUCE, GroupKind.REDUCE_WINDOW})  # possible readers
_MUST_MATERIALISE = 1 << 30  # more than any number of operations: the reader needs the operand in memory
_IDENTITY = 0  # chain of values requested at the index of the loop itself


@dataclass(eq=False)
class Draft:
    """Group under construction; `instructions` maps each instruction to the chains of index maps that request it."""

    kind: GroupKind
    size: int
    number: int
    instructions: dict[Instruction, frozenset[int]] = field(default_factory=dict)
    outputs: dict[Instruction, str] = field(default_factory=dict)  # stored results, with the reason
    dependencies: dict[Draft, None] = field(default_factory=dict)
    root: Instruction | None = None
    first: int = 0
    merged: Draft | None = None
    reasons: list[Refusal] = field(default_factory=list)
    costly: int = 0  # number of costly instructions, see MAX_COSTLY
    parts: list[Draft] = field(default_factory=list)
    repeated_ops: dict[Instruction, int] = field(default_factory=dict)  # operations repeated to reach an instruction

    @property
    def name(self) -> str:
        """Kind of the group, or the opcode of a single instruction."""
        return self.kind if self.kind is not GroupKind.SINGLE else next(iter(self.outputs)).opcode

    def refuse(self, ins: Instruction, reason: str) -> None:
        """Note an instruction that is not taken in."""
        self.reasons.append(_refusal(ins, reason))


#: Groups that read an instruction, each with its chains of index maps and the operations repeated along them.
_Readers: TypeAlias = "dict[Draft, tuple[frozenset[int], int]]"


class Fuser:
    """Sweep over one computation; see `fuse`."""

    def __init__(
        self,
        computation: Computation,
        materialised: Mapping[Instruction, str],
        sizes: AbstractSet[Instruction],
        *,
        repeated: bool = False,
    ) -> None:
        self.sizes, self.repeated = sizes, repeated
        self.order = [i for i in computation.post_order() if not is_forwarding(i)]
        self.number = {ins: n for n, ins in enumerate(self.order)}
        self.sources = {ins: _sources(ins) for ins in self.order}
        self.forced = {v.instruction: reason for ins, reason in materialised.items() for v in leaves(ins)}
        self.forced.update((v.instruction, "it is a result") for v in leaves(computation.root))
        self.users: dict[Instruction, list[Instruction]] = {}
        self.drafts: list[Draft] = []
        self.computed_in: dict[Instruction, list[Draft]] = {}  # groups that compute an instruction
        self.chains: dict[tuple[int, Instruction, int], int] = {}
        self.requested: dict[int, int] = {}  # upper bound of the number of elements that a chain requests
        self.loopable: dict[Instruction, bool] = {}

    def run(self) -> list[Group]:
        """Sweep, then order the groups."""
        for ins in self.order:
            for source in dict.fromkeys(v.instruction for _, v in self.sources[ins]):
                self.users.setdefault(source, []).append(ins)
        for ins in reversed(self.order):
            if ins.opcode not in _LEAVES and self._is_needed(ins):
                self._assign(ins)
        ordered = self._ordered()
        has_rows = any(d.kind is GroupKind.REDUCE for d in ordered)
        row_groups = merge_rows(self, ordered, self._edges(ordered)) if has_rows else []
        for drafts in row_groups:
            self._join_rows(drafts)
        return [self._finish(d) for d in (self._ordered() if row_groups else ordered)]

    def _is_needed(self, ins: Instruction) -> bool:
        return ins in self.forced or ins.has_side_effect or any(u in self.computed_in for u in self.users.get(ins, ()))

    # ------------------------------------------------------------------------------------------------ one instruction
    def _assign(self, ins: Instruction) -> None:
        self.loopable[ins] = is_loopable(ins)
        readers = self._find_readers(ins)
        if ins.opcode in CONTRACTIONS:
            refusal = self._inline_contraction(ins, readers)
            reason = refusal and (self._memory_reason(ins, readers) or refusal)
        else:
            reason = self._memory_reason(ins, readers) or self._inline(ins, readers)
        if reason is not None:
            self._materialise(ins, readers, reason)

    def _memory_reason(self, ins: Instruction, readers: _Readers) -> str | None:
        """Return the reason for which an instruction must be in memory; None if it need not be."""
        if ins in self.forced:
            return self.forced[ins]
        if not readers:
            return "it has side effects"
        for draft, (_, repeated_ops) in readers.items():
            if draft.kind not in _FUSED:
                return f"{article(draft.name)} reads its operands from memory"
            if repeated_ops >= _MUST_MATERIALISE:
                return f"{article(draft.root.opcode if draft.root is not None else draft.name)} reads it from memory"
        return None

    def _find_readers(self, ins: Instruction) -> _Readers:
        """Return the groups that read an instruction, each with the chains and the operations repeated on the way."""
        readers: _Readers = {}
        for user in self.users.get(ins, ()):
            for draft in dict.fromkeys(_merge_target(d) for d in self.computed_in.get(user, ())):
                chains, repeated_ops = readers.get(draft, (frozenset(), 0))
                for position, value in self.sources[user]:
                    if value.instruction is ins:
                        more, more_ops = self._requests(draft, user, position, ins)
                        chains, repeated_ops = chains | more, max(repeated_ops, more_ops)
                readers[draft] = (chains, repeated_ops)
        return readers

    def _requests(self, draft: Draft, user: Instruction, position: int, ins: Instruction) -> tuple[frozenset[int], int]:
        if user not in draft.instructions:
            return frozenset((_IDENTITY,)), 0
        if user.opcode in CONTRACTIONS:
            return frozenset((_IDENTITY,)), _MUST_MATERIALISE
        chains, repeated_ops = draft.instructions[user], draft.repeated_ops.get(user, 0)
        if self.loopable.get(user) and user.opcode not in MOVEMENT and _same_size(user, ins):
            return chains, repeated_ops
        if user.opcode == "dynamic-update-slice" and position == 0:
            return frozenset((_IDENTITY,)), _MUST_MATERIALISE
        stepped = frozenset(self._chain(c, user, position, ins) for c in chains)
        if _repeats(user, position, ins, at_root=chains == {_IDENTITY} and draft.kind is GroupKind.LOOP):
            repeated_ops += max(1, cost.flops(ins)) if cost.flops(ins) else 0
        elif repeated_ops:
            repeated_ops += cost.flops(ins)
        return stepped, repeated_ops

    def _chain(self, before: int, user: Instruction, position: int, ins: Instruction) -> int:
        chain = self.chains.setdefault((before, user, position), len(self.chains) + 1)
        is_read_once = user.opcode in ("pad", "concatenate") or not user.shape.is_array
        count = ins.shape.size if is_read_once else user.shape.size
        self.requested[chain] = min(count, self.requested.get(before, count))
        return chain

    # ------------------------------------------------------------------------------------------------ inlining
    def _inline(self, ins: Instruction, readers: _Readers) -> str | None:
        """Compute an instruction inside the groups that read it, or return the reason for which that is not done."""
        if ins.opcode in ROOTS:
            return self._inline_root(ins, readers)
        if not self.loopable[ins]:
            return f"{article(ins.opcode)} has no epilogue"
        drafts = list(readers)
        if len(drafts) > 1 and not self._cheap_everywhere(ins, len(drafts)):
            merged = self._merge(drafts, readers)
            if isinstance(merged, str):
                return f"{len(drafts)} kernels read it, which cannot be one, since {merged}"
            readers, drafts = {merged: (frozenset((_IDENTITY,)), 0)}, [merged]
        refusals = {d: reason for d in drafts if (reason := self._refusal(ins, d, *readers[d])) is not None}
        for draft, reason in refusals.items():
            draft.refuse(ins, reason)
        if refusals:
            return next(iter(refusals.values()))
        for draft in drafts:
            self._add(ins, draft, *readers[draft])
        return None

    def _refusal(self, ins: Instruction, draft: Draft, chains: frozenset[int], repeated_ops: int) -> str | None:
        if len(draft.instructions) >= MAX_INSTRUCTIONS:
            return f"the group has {MAX_INSTRUCTIONS} instructions"
        if draft.costly >= MAX_COSTLY and _is_costly(ins):
            return f"the group has {MAX_COSTLY} costly instructions"
        if len(chains) > MAX_COPIES:
            return f"it would be computed at {len(chains)} indices"
        if len(chains) > 1 and cost.flops(ins) > cost.CHEAP_FLOPS and ins.shape.size > 1:
            return f"it is too costly to compute at {len(chains)} indices"
        if len(chains) > 1 and ins.shape.size >= _SMALL_ARRAY and self._repeated(ins, chains) > MAX_RECOMPUTED:
            return f"too much would be recomputed at {len(chains)} indices"
        if repeated_ops > cost.CHEAP_FLOPS and ins.shape.size > 1:
            return "each element is read several times and too costly to recompute"
        if draft.kind in _CONTRACTIONS and ins.opcode in _PERMUTING and ins.shape.size > 1:
            return "the epilogue of a contraction does not permute its other operands"
        if draft.kind is GroupKind.UPDATE and draft.root is not None and self._reads_target(ins, draft.root):
            is_same_place = chains == {self.chains.get((_IDENTITY, draft.root, 1))}
            if self.repeated and is_same_place and is_updated_box(ins, draft.root):
                return None  # each element is read where it is overwritten
            return "it reads the array that is updated in place"
        return None

    def _repeated(self, ins: Instruction, chains: frozenset[int]) -> float:
        """Return the operations per element that would be repeated for an instruction and its operands."""
        requested = sum(min(self.requested.get(c, ins.shape.size), ins.shape.size) for c in chains) / ins.shape.size
        return (requested - 1) * self._depth(ins) if requested > 1 else 0.0

    def _depth(self, ins: Instruction) -> int:
        """Return the operations per element of an instruction and of its fused operands, up to a limit."""
        seen, stack, total = {ins}, [ins], 0
        while stack and total <= MAX_RECOMPUTED:
            current = stack.pop()
            total += cost.flops(current)
            for _, value in self.sources[current]:
                source = value.instruction
                if (
                    source not in seen
                    and source.opcode not in _LEAVES
                    and source.shape.is_array
                    and is_loopable(source)
                ):
                    seen.add(source)
                    stack.append(source)
        return total

    def _reads_target(self, ins: Instruction, root: Instruction) -> bool:
        target = resolve(root.operands[0])
        return any(v == target for _, v in self.sources[ins])

    def _cheap_everywhere(self, ins: Instruction, readers: int) -> bool:
        if ins.shape.size == 1:
            return cost.flops(ins) <= cost.CHEAP_FLOPS
        if ins.opcode in ("compare", "and") and mask_of(ins):  # read from memory, it would have to be there as a whole
            return True
        flops = cost.flops(ins)
        arrays = sum(v.shape.size > 1 for _, v in self.sources[ins])
        return (flops == 0 and arrays <= 1) or (flops <= cost.CHEAP_FLOPS and arrays <= 1 and readers <= 4)

    def _inline_root(self, ins: Instruction, readers: _Readers) -> str | None:
        """Make the only reader of a reduction its epilogue, if it reads element by element, or return a reason."""
        (draft, (chains, repeated_ops)), *others = readers.items()
        if (
            is_elementwise_select_and_scatter(ins)
            and draft.kind is GroupKind.LOOP
            and not others
            and not repeated_ops
            and len(chains) == 1
        ):
            draft.kind, draft.root = GroupKind.WINDOW_SCATTER, ins
            self._add(ins, draft, chains, 0)
            return None
        if others:
            return f"{len(readers)} kernels read it"
        if ins.opcode not in _REDUCTIONS:
            return f"{article(ins.opcode)} has no epilogue"
        reason = _epilogue_refusal(ins, draft, chains)
        if reason is None:
            draft.kind, draft.root = _KINDS[ins.opcode], ins
            self._add(ins, draft, chains, 0)
        return reason

    def _inline_contraction(self, ins: Instruction, readers: _Readers) -> str | None:
        """Make an element-wise group the epilogue of a contraction, if it reads element by element, or return a reason.

        If other groups read the result too, it is one more output of that group.
        """
        refused = f"{article(ins.opcode)} has a kernel of its own"
        for draft, (chains, repeated_ops) in readers.items():
            if draft.kind not in _BEFORE_CONTRACTIONS:
                continue
            reason = self._contraction_refusal(ins, draft, chains, repeated_ops)
            others = [d for d in readers if d is not draft]
            if reason is None and any(self._depends(draft, d) for d in others):
                reason = "the group waits for another that reads it"
            if reason is None and (others or ins in self.forced) and len(draft.outputs) >= MAX_OUTPUTS:
                reason = f"the group has {MAX_OUTPUTS} outputs"
            if reason is not None:
                draft.refuse(ins, reason)
                refused = reason
                continue
            draft.kind, draft.root = _KINDS[ins.opcode], ins
            self._add(ins, draft, frozenset((_IDENTITY,)), 0)
            if others or ins in self.forced:
                draft.outputs[ins] = self.forced.get(ins, f"{len(readers)} kernels read it")
            for reader in others:
                reader.dependencies[draft] = None
            return None
        return refused

    def _contraction_refusal(
        self, ins: Instruction, draft: Draft, chains: frozenset[int], repeated_ops: int
    ) -> str | None:
        """Return the reason for which a group cannot be the epilogue of a contraction; None if it can."""
        if ins.control_predecessors or repeated_ops >= _MUST_MATERIALISE:
            return "it has to be in memory"
        reason = _epilogue_refusal(ins, draft, chains)
        if reason is not None:
            return reason
        if any(i.opcode in _PERMUTING and i.shape.size > 1 for i in draft.instructions):
            return "the group permutes other operands"
        return None

    def _add(self, ins: Instruction, draft: Draft, chains: frozenset[int], repeated_ops: int) -> None:
        draft.instructions[ins] = chains
        draft.repeated_ops[ins] = repeated_ops
        draft.costly += _is_costly(ins)
        self.computed_in.setdefault(ins, []).append(draft)
        draft.first = self.number[ins]

    # ------------------------------------------------------------------------------------------------ materialisation
    def _materialise(self, ins: Instruction, readers: _Readers, reason: str) -> None:
        draft = self._storing_group(ins, readers)
        if draft is None:
            kind = GroupKind.LOOP if self.loopable[ins] else _kind(ins)
            draft = Draft(kind, ins.shape.size if ins.shape.is_array else 0, self.number[ins])
            draft.root = ins if ins.opcode in ROOTS else None
            self.drafts.append(draft)
        self._add(ins, draft, frozenset((_IDENTITY,)), 0)
        draft.outputs[ins] = reason
        for reader in readers:
            if reader is not draft:
                reader.dependencies[draft] = None

    def _storing_group(self, ins: Instruction, readers: _Readers) -> Draft | None:
        """Return a group that iterates over the elements of an instruction and may store them; None without one."""
        if not self.loopable[ins]:
            return None
        for draft, (chains, _) in readers.items():
            if draft.kind is not GroupKind.LOOP or chains != {_IDENTITY} or draft.size != ins.shape.size:
                continue
            if draft.costly >= MAX_COSTLY and _is_costly(ins):
                continue
            if (
                len(draft.instructions) >= MAX_INSTRUCTIONS
                or len(draft.outputs) >= MAX_OUTPUTS
                or ins.control_predecessors
            ):
                continue
            if not any(self._depends(draft, other) for other in readers if other is not draft):
                return draft
        return None

    def _merge(self, drafts: list[Draft], readers: _Readers) -> Draft | str:
        """Merge the groups that read an instruction into the first, or return the reason for which that is not done."""
        first, *others = drafts
        if not all(d.kind is GroupKind.LOOP and d.size == first.size and readers[d][0] == {_IDENTITY} for d in drafts):
            return "they do not all iterate over its elements in their order"
        if len(drafts) > MAX_MERGED:
            return f"they are more than {MAX_MERGED}"
        if sum(len(d.instructions) for d in drafts) >= MAX_INSTRUCTIONS:
            return f"it would have {MAX_INSTRUCTIONS} instructions"
        if sum(d.costly for d in drafts) > MAX_COSTLY:
            return f"it would have more than {MAX_COSTLY} costly instructions"
        if sum(len(d.outputs) for d in drafts) > MAX_OUTPUTS:
            return f"it would have more than {MAX_OUTPUTS} outputs"
        if any(self._depends(a, b) for a in drafts for b in drafts if a is not b):
            return "one depends on another"
        for other in others:
            _absorb(first, other)
        return first

    def _depends(self, a: Draft, b: Draft) -> bool:
        """Return whether a group depends on another, directly or through others; True in doubt."""
        seen: set[Draft] = set()
        stack = [a]
        while stack:
            for d in [_merge_target(d) for d in stack.pop().dependencies]:
                if d is b or len(seen) > _MAX_VISITS:
                    return True
                if d not in seen:
                    seen.add(d)
                    stack.append(d)
        return False

    # ------------------------------------------------------------------------------------------------ rows
    def _edges(self, drafts: list[Draft]) -> dict[Draft, list[Draft]]:
        """Return the groups that must run before each group."""
        after = self._side_effects(drafts)
        return {d: self._predecessors(d, after) for d in drafts}

    def _join_rows(self, drafts: list[Draft]) -> None:
        """Make one group of some that iterate over the same rows."""
        joint = Draft(GroupKind.ROW, drafts[-1].size, drafts[0].number, parts=list(drafts))
        members = set(drafts)
        for draft in drafts:
            joint.outputs.update((o, reason) for o, reason in draft.outputs.items() if self.is_read_outside(o, members))
        for draft in drafts:
            joint.instructions.update(draft.instructions)
            joint.dependencies.update((d, None) for d in map(_merge_target, draft.dependencies) if d not in members)
            joint.reasons += draft.reasons
        for draft in drafts:
            draft.merged = joint
        self.drafts.append(joint)

    def is_read_outside(self, ins: Instruction, members: set[Draft]) -> bool:
        """Return whether the result of an instruction is read outside of some groups, or is a result."""
        drafts = [_merge_target(d) for u in self.users.get(ins, ()) for d in self.computed_in.get(u, ())]
        return ins in self.forced or any(d not in members for d in drafts)

    # ------------------------------------------------------------------------------------------------ result
    def _ordered(self) -> list[Draft]:
        live = [d for d in self.drafts if d.merged is None]
        after = self._side_effects(live)
        live.sort(key=lambda d: min(self.number[o] for o in d.outputs))
        done: dict[Draft, None] = {}
        for start in live:
            stack = [start]
            while stack:
                draft = stack[-1]
                before = [d for d in self._predecessors(draft, after) if d not in done]
                if before and draft not in done:
                    stack += before[::-1]
                else:
                    done.setdefault(stack.pop())
        return list(done)

    def _predecessors(self, draft: Draft, after: dict[Draft, list[Draft]]) -> list[Draft]:
        needs = dict.fromkeys(_merge_target(d) for d in draft.dependencies)
        return sorted([*needs, *after.get(draft, ())], key=lambda d: d.number)

    def _side_effects(self, live: list[Draft]) -> dict[Draft, list[Draft]]:
        """Return the groups that come before each for other reasons than data: side effects, control edges."""
        after: dict[Draft, list[Draft]] = {}
        all_effectful = sorted((d for d in live if any(o.has_side_effect for o in d.outputs)), key=lambda d: d.number)
        for before, effectful in pairwise(all_effectful):
            after.setdefault(effectful, []).append(before)
        for ins in self.order:
            for p in (*ins.control_predecessors, *_token_sources(ins)):
                for draft in self.computed_in.get(ins, ()):
                    others = [
                        _merge_target(d)
                        for d in self.computed_in.get(p, ())
                        if _merge_target(d) is not _merge_target(draft)
                    ]
                    after.setdefault(_merge_target(draft), []).extend(others)
        return after

    def _finish(self, draft: Draft) -> Group:
        instructions = sorted(draft.instructions, key=self.number.__getitem__)
        parts = [self._finish(d) for d in draft.parts]
        stored = [_refusal(ins, reason) for ins, reason in draft.outputs.items()]
        return Group(draft.kind, instructions, list(draft.outputs), draft.reasons, parts, stored)


def article(name: str) -> str:
    """Return a word with its indefinite article."""
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _refusal(ins: Instruction, reason: str) -> Refusal:
    return Refusal("fusion", f"{ins.opcode} {ins.shape.static}", reason)


def _epilogue_refusal(ins: Instruction, draft: Draft, chains: frozenset[int]) -> str | None:
    """Return the reason for which a group is no epilogue of an instruction; None if it can be one."""
    if draft.kind is not GroupKind.LOOP:
        return f"it is read by {article(draft.name)}"
    if chains != {_IDENTITY} or not ins.shape.is_array or draft.size != ins.shape.size:
        return "its elements are not read in their order"
    if not is_static(ins):
        return "it has dynamic sizes"
    if len(draft.instructions) >= MAX_INSTRUCTIONS:
        return f"the group has {MAX_INSTRUCTIONS} instructions"
    return None


def _merge_target(draft: Draft) -> Draft:
    while draft.merged is not None:
        draft = draft.merged
    return draft


def _absorb(into: Draft, other: Draft) -> None:
    for ins, chains in other.instructions.items():
        into.instructions[ins] = into.instructions.get(ins, frozenset()) | chains
        into.repeated_ops[ins] = max(into.repeated_ops.get(ins, 0), other.repeated_ops[ins])
    into.costly += other.costly
    into.outputs.update(other.outputs)
    into.dependencies.update(other.dependencies)
    into.reasons += other.reasons
    other.merged = into


def _sources(ins: Instruction) -> list[tuple[int, Value]]:
    """Return the arrays that an instruction reads, each with the number of the operand."""
    sources = []
    for position, operand in enumerate(ins.operands):
        if not is_read(ins, position) or (ins.opcode == "sort" and not reads_operand(ins, position)):
            continue
        if operand.shape.is_array:
            sources.append((position, resolve(operand)))
        else:
            sources += [(position, v) for v in leaves(operand)]
    return sources


def _token_sources(ins: Instruction) -> Iterator[Instruction]:
    """Yield the instructions behind the tokens that an instruction takes."""
    stack = [o for o in ins.operands if not o.shape.is_array]
    stack += [o for o in ins.operands if o.opcode == "add-dependency"]
    seen = set()
    while stack:
        source = stack.pop()
        if source in seen:
            continue
        seen.add(source)
        if is_forwarding(source):
            stack += source.operands
        elif source.opcode not in _LEAVES:
            yield source


def _kind(ins: Instruction) -> GroupKind:
    if is_elementwise_select_and_scatter(ins):
        return GroupKind.WINDOW_SCATTER
    return _KINDS.get(ins.opcode, GroupKind.SINGLE)


def _is_costly(ins: Instruction) -> bool:
    return ins.opcode not in ROOTS and ins.shape.is_array and cost.flops(ins) > cost.CHEAP_FLOPS


def _same_size(user: Instruction, ins: Instruction) -> bool:
    return user.shape.is_array and ins.shape.is_array and user.shape.size == ins.shape.size


def _repeats(user: Instruction, position: int, ins: Instruction, *, at_root: bool) -> bool:
    """Return whether a reader requests elements of an instruction more than once each, deep in the loops."""
    if not ins.shape.is_array or ins.shape.size == 1:
        return False
    if user.opcode in ("reduce", "dynamic-update-slice"):
        return False
    if user.opcode in ("reduce-window", "select-and-scatter"):
        if user.opcode == "reduce-window" and prefix(user) is not None:
            return False
        window: Window = user.attrs["window"]
        return prod(w.size for w in window) > prod(w.stride for w in window)
    if user.shape.is_array and user.shape.size <= ins.shape.size:
        return user.opcode == "gather"
    if user.opcode == "broadcast" and at_root:
        dims = user.attrs["dimensions"]
        inner = prod(user.shape.dims[len(dims) :])
        return not (tuple(dims) == tuple(range(len(dims))) and inner >= _LONG_ROW)
    return user.opcode not in ("pad", "concatenate")


def _check_loop(ins: Instruction) -> str | None:
    if is_loopable(ins):
        return None
    if not is_static(ins):
        return f"{ins.opcode} with dynamic sizes"
    return f"{ins.opcode} to {ins.shape.dtype} from {', '.join(str(o.shape.dtype) for o in ins.operands)}"


def _check_update(ins: Instruction) -> str | None:
    return None if is_static(ins) else f"{ins.opcode} with dynamic sizes"


fusible(
    *sorted(o for o, row in OPCODES.items() if row.elementwise),
    *sorted(MOVEMENT),
    "map",
    "bitcast-convert",
    check=_check_loop,
)
fusible("dynamic-update-slice", check=_check_update)
fusible(*sorted(_LEAVES))
