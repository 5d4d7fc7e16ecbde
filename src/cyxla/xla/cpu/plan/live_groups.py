"""Iteration spaces of groups, cut to the live parts of their results (see `plan.live_rows`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from cyxla.xla.cpu.kernel.cumulative_windows import prefix
from cyxla.xla.cpu.kernel.groups import Group, GroupKind, Live
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import leaf_indices, leaves
from cyxla.xla.cpu.plan.live_rows import LiveRows
from cyxla.xla.cpu.plan.live_rules import (
    ALL,
    MAX_SIZES,
    Parts,
    compaction_part,
    compaction_stops,
    fft_part,
    join,
    product_stops,
    scatter_stops,
    sort_part,
    update_part,
)
from cyxla.xla.cpu.plan.masks import reshaped, stops_of
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.hlo.compaction_signature import is_pure_compaction

_GIVEN = ("parameter", "constant")  # opcodes of sizes that are in memory before anything runs


def cut_groups(computation: Computation, groups: Sequence[Group], live: LiveRows) -> list[Group]:
    """Set the live part of each group's iteration space; return the groups with those that compute sizes first."""
    producers = {out: group for group in groups for out in group.outputs}
    needs = {group: _needs(group, producers) for group in groups}
    ordered = _sizes_first(groups, needs, [producers[s] for s in live.sizes() if s in producers])
    numbers = {ins: n for n, ins in enumerate(computation.post_order())}
    computed: set[Instruction] = set()

    def known(part: Live, own: Sequence[Instruction] = ()) -> dict[int, tuple[Value, ...]]:
        return {
            d: tuple(sorted(sizes, key=lambda v: (numbers[v.instruction], v.index)))
            for d, sizes in sorted(part.items())
            if all(v.instruction in computed or v.instruction in own or v.instruction.opcode in _GIVEN for v in sizes)
        }

    for group in ordered:
        for part in (group, *group.parts):
            if part.kind is GroupKind.SINGLE:
                ins = part.root
                if ins.opcode in _SINGLE and ins in live.parts:
                    part.live, part.stops = (known(p, (ins,)) for p in _SINGLE[ins.opcode](ins, live.parts[ins]))
            elif part.kind in _LIVE:
                part.live = known(_LIVE[part.kind](part, live.parts))
            if part.kind in _STOPS:
                part.stops = known(_STOPS[part.kind](part, live.parts))
        computed.update(group.outputs)
    return ordered


def _needs(group: Group, producers: Mapping[Instruction, Group]) -> list[Group]:
    """Return the other groups whose results a group reads or waits for."""
    operands = (v.instruction for ins in group.instructions for o in ins.operands for v in leaves(o))
    before = (p for ins in group.instructions for p in ins.control_predecessors)
    found = dict.fromkeys(producers[i] for i in (*operands, *before) if i in producers)
    return [g for g in found if g is not group]


def _sizes_first(groups: Sequence[Group], needs: Mapping[Group, list[Group]], first: Sequence[Group]) -> list[Group]:
    """Return groups in an order in which they can run, those of `first` as early as their operands allow.

    Groups with side effects keep their order, so nothing is moved before one.
    """
    if any(ins.has_side_effect for group in groups for ins in group.outputs):
        return list(groups)
    early: dict[Group, None] = {}
    stack = list(first)
    while stack:
        group = stack.pop()
        if group not in early:
            early[group] = None
            stack += needs[group]
    return [g for g in groups if g in early] + [g for g in groups if g not in early]


# ------------------------------------------------------------------------------------------------- iteration spaces
_AllParts = Mapping[Instruction, Parts]


def _group_part(group: Group, live: _AllParts) -> Live:
    """Return the part of a group's iteration space that its outputs' live parts need."""
    dims, found = group.space, None
    for out in group.outputs:
        for index in leaf_indices(out.shape):
            if index not in live.get(out, {}):
                return ALL
            part = _in_space(live[out][index], out.shape.subshape(index).dims, dims)
            found = part if found is None else join(found, part)
    return _wide(found or ALL, dims)


def _wide(part: Live, dims: Sequence[int]) -> Live:
    return {d: sizes for d, sizes in part.items() if d < len(dims) and dims[d] > 1}


def _in_space(part: Live, dims: tuple[int, ...], space: tuple[int, ...]) -> Live:
    """Return a part of an array as one of an iteration space, of whose points it has one element or one row each."""
    if dims == space:
        return part
    length = prod(dims) // max(1, prod(space))
    return reshaped(part, dims, space if length == 1 else (*space, length))


def _window_part(group: Group, live: _AllParts) -> Live:
    """Return the part of the iteration space of a scan; those of other windows are not cut."""
    scan = prefix(group.root)
    if scan is None or any(o.shape.size != group.root.shape.size for o in group.outputs):
        return ALL
    part = _group_part(group, live)
    return {d: sizes for d, sizes in part.items() if d != scan.dimension or not scan.backward}


def _update_space(group: Group, live: _AllParts) -> Live:
    return _wide(update_part(group.root, live.get(group.root, {})), group.root.operands[1].shape.dims)


_LIVE: dict[GroupKind, Callable[[Group, _AllParts], Live]] = {
    GroupKind.LOOP: _group_part, GroupKind.DOT: _group_part, GroupKind.REDUCE: _group_part, GroupKind.ROW: _group_part,
    GroupKind.REDUCE_WINDOW: _window_part, GroupKind.UPDATE: _update_space,
}  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- stops
def _row_stops(group: Group, live: _AllParts) -> Live:
    """Return the sizes at which all passes over a row may stop, by the first dimension along a row."""
    reductions = [i for i in group.instructions if i.opcode == "reduce"]
    dims, first = reductions[0].operands[0].shape.dims, len(group.space)
    parts = [stops_of(i) for i in reductions if i.operands[0].shape.dims == dims]
    if len(parts) < len(reductions):
        return ALL
    by_element = [o for o in group.outputs if prod(o.shape.dims) == prod(dims)]
    if not all(() in live.get(o, {}) for o in by_element):
        return ALL
    parts += [reshaped(live[o][()], o.shape.dims, dims) for o in by_element]
    sizes = frozenset().union(*(part[first] for part in parts if first in part))
    return {first: sizes} if all(first in part for part in parts) and len(sizes) <= MAX_SIZES else ALL


_STOPS: dict[GroupKind, Callable[[Group, _AllParts], Live]] = {
    GroupKind.REDUCE: lambda group, live: stops_of(group.root),
    GroupKind.ROW: _row_stops,
    GroupKind.DOT: lambda group, live: product_stops(group.root),
}


# --------------------------------------------------------------------------------------------- kernels of one opcode
def _sort(ins: Instruction, parts: Parts) -> tuple[Live, Live]:
    return _wide(sort_part(ins, parts), ins.operands[0].shape.dims), ALL


def _custom_call(ins: Instruction, parts: Parts) -> tuple[Live, Live]:
    return (compaction_part(ins, parts), compaction_stops(ins)) if is_pure_compaction(ins) else (ALL, ALL)


def _fft(ins: Instruction, parts: Parts) -> tuple[Live, Live]:
    part = fft_part(ins, parts.get((), ALL))
    return _wide({d: sizes for d, sizes in part.items() if d == 0}, ins.shape.dims), ALL


def _scatter(ins: Instruction, parts: Parts) -> tuple[Live, Live]:
    return ALL, scatter_stops(ins)


#: Functions from an instruction and its live parts to the part of its results that is written and its stops.
_SINGLE: dict[str, Callable[[Instruction, Parts], tuple[Live, Live]]] = {
    "sort": _sort, "custom-call": _custom_call, "scatter": _scatter, "fft": _fft,
}  # fmt: skip
