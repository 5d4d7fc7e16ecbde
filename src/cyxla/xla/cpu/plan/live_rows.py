"""Live rows: leading parts of arrays, of sizes known at run time, beyond which no element matters.

Programs of sizes known at run time have arrays of a bound, padded beyond the size, and mask the padding::

    select(compare(iota(d) < broadcast(size)), x, filler)

Elements of ``x`` at ``size`` and beyond along dimension ``d`` have no influence on the result, nor have the elements
that only these are computed from. A sweep from the results to the parameters finds the leading part of every array
that matters; the kernels compute that part alone, rounded up to their units of work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import TypeAlias

from cyxla.errors import InvalidArgumentError
from cyxla.xla.cpu.kernel.groups import Group, GroupKind, Live, prefix
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import FORWARDING, leaves, resolve
from cyxla.xla.cpu.plan.masks import SIZE_TYPES, fill_of, has_sizes, mask_of, stops_of
from cyxla.xla.hlo import OPCODES, Computation, Instruction
from cyxla.xla.passes.expand.dot import DotDims, has_packed_rhs

#: Result leaf, dimension of it, and the result leaf that holds the number of its live elements along that dimension.
LiveResult: TypeAlias = tuple[int, int, int]

_ALL: Live = {}  # every element matters
_MAX_SIZES = 3  # sizes whose maximum bounds a dimension; with more, every element matters
_CUT_KINDS = frozenset({GroupKind.LOOP, GroupKind.DOT, GroupKind.REDUCE, GroupKind.ROW})


# ---------------------------------------------------------------------------------------------------------------- sweep
def live_rows(computation: Computation, results: Sequence[LiveResult] = ()) -> dict[Instruction, Live]:
    """Return the live part of every array of a computation that any result depends on; without sizes, nothing.

    Parameters
    ----------
    computation : Computation
        Computation after all passes.
    results : sequence of LiveResult
        Results of which the caller reads the live elements alone.
    """
    if not results and not has_sizes(computation):
        return {}
    live: dict[Instruction, Live] = {}
    order = computation.post_order()
    root = computation.root
    if root.opcode == "tuple" and all(o.shape.is_array for o in root.operands):
        for operand, read in zip(root.operands, _read_parts(root, results), strict=True):
            _demand(live, operand, read)
    else:
        live[root] = _ALL
    for ins in reversed(order):
        if ins.has_side_effect:
            live[ins] = _ALL
        if ins not in live or (ins is root and ins.opcode == "tuple"):
            continue
        parts = _operand_parts(ins, live[ins])
        for operand, part in zip(ins.operands, parts, strict=True):
            _demand(live, operand, part)
    return live


def _read_parts(root: Instruction, results: Sequence[LiveResult]) -> list[Live]:
    """Return the part of each result that the caller reads."""
    parts: list[dict[int, frozenset[Value]]] = [{} for _ in root.operands]
    for leaf, dimension, size in results:
        value = resolve(root.operands[size])
        if value.instruction.opcode != "constant":
            parts[leaf][dimension] = frozenset((value,))
    return [*parts]


def check_live_results(root: Instruction, results: Sequence[LiveResult]) -> None:
    """Check that results and their sizes exist.

    Raises
    ------
    InvalidArgumentError
        A result has no such dimension, or a size is no integer scalar.
    """
    shapes = list(root.shape.leaves())
    for leaf, dimension, size in results:
        if not (0 <= leaf < len(shapes) and 0 <= size < len(shapes) and 0 <= dimension < shapes[leaf].rank):
            raise InvalidArgumentError(f"live_results: no dimension {dimension} of result {leaf}, or no result {size}")
        if shapes[size].size != 1 or shapes[size].dtype not in SIZE_TYPES:
            raise InvalidArgumentError(f"live_results: result {size} is {shapes[size]}, not an s32, s64 or u32 scalar")


def _demand(live: dict[Instruction, Live], ins: Instruction, part: Live) -> None:
    live[ins] = join(live[ins], part) if ins in live else part


def join(one: Live, other: Live) -> Live:
    """Return the least part that contains two."""
    joint = {d: one[d] | other[d] for d in one if d in other}
    return {d: sizes for d, sizes in joint.items() if len(sizes) <= _MAX_SIZES}


def _operand_parts(ins: Instruction, part: Live) -> Sequence[Live]:
    """Return the parts of the operands that a part of the result depends on."""
    if not ins.shape.is_array or not all(o.shape.is_array for o in ins.operands):
        return [_ALL] * len(ins.operands)
    if ins.opcode in _RULES:
        return _RULES[ins.opcode](ins, part)
    if ins.opcode in FORWARDING:
        return [reshaped(part, ins.shape.dims, ins.operands[0].shape.dims)] + [_ALL] * (len(ins.operands) - 1)
    if OPCODES[ins.opcode].elementwise or ins.opcode == "map":
        return _elementwise(ins, part)
    return [_ALL] * len(ins.operands)


def reshaped(part: Live, dims: Sequence[int], to: Sequence[int]) -> Live:
    """Return a part of an array as one of a reshaped array, for the dimensions that the two have in common."""
    if prod(dims) != prod(to):
        return _ALL
    positions = {key: d for d, key in enumerate(_strides(to))}
    return {positions[key]: part[d] for d, key in enumerate(_strides(dims)) if d in part and key in positions}


def _strides(dims: Sequence[int]) -> list[tuple[int, int]]:
    """Return the size and the stride of each dimension, which tell apart all but those of one element."""
    strides = [1] * (len(dims) + 1)
    for d in range(len(dims) - 1, -1, -1):
        strides[d] = strides[d + 1] * dims[d]
    return [(outer, inner) for outer, inner in pairwise(strides)]


# ---------------------------------------------------------------------------------------------------------------- rules
def _elementwise(ins: Instruction, part: Live) -> list[Live]:
    return [part if o.shape.dims == ins.shape.dims else _ALL for o in ins.operands]


def _select(ins: Instruction, part: Live) -> list[Live]:
    predicate, chosen, other = _elementwise(ins, part)
    return [predicate, {**chosen, **mask_of(ins.operands[0])}, other]


def _broadcast(ins: Instruction, part: Live) -> list[Live]:
    dims = ins.attrs["dimensions"]
    of, to = ins.operands[0].shape.dims, ins.shape.dims
    return [{d: part[o] for d, o in enumerate(dims) if o in part and of[d] == to[o]}]


def _transpose(ins: Instruction, part: Live) -> list[Live]:
    return [{d: part[o] for o, d in enumerate(ins.attrs["dimensions"]) if o in part}]


def _reverse(ins: Instruction, part: Live) -> list[Live]:
    return [{d: sizes for d, sizes in part.items() if d not in ins.attrs["dimensions"]}]


def _slice(ins: Instruction, part: Live) -> list[Live]:
    slices = ins.attrs["slice"]
    return [{d: sizes for d, sizes in part.items() if slices[d].start == 0 and slices[d].stride == 1}]


def _dynamic_slice(ins: Instruction, part: Live) -> list[Live]:
    of, to = ins.operands[0].shape.dims, ins.shape.dims
    return [{d: sizes for d, sizes in part.items() if of[d] == to[d]}, *[_ALL] * (len(ins.operands) - 1)]


def _dynamic_update_slice(ins: Instruction, part: Live) -> list[Live]:
    whole, new = ins.shape.dims, ins.operands[1].shape.dims
    update = {d: sizes for d, sizes in part.items() if whole[d] == new[d]}
    return [part, update, *[_ALL] * (len(ins.operands) - 2)]


def _pad(ins: Instruction, part: Live) -> list[Live]:
    padding = ins.attrs["padding"]
    return [{d: sizes for d, sizes in part.items() if padding[d].low == 0 and padding[d].interior == 0}, _ALL]


def _concatenate(ins: Instruction, part: Live) -> list[Live]:
    (axis,) = ins.attrs["dimensions"]
    beside = {d: sizes for d, sizes in part.items() if d != axis}
    return [part, *[beside] * (len(ins.operands) - 1)]


def _reduce(ins: Instruction, part: Live) -> list[Live]:
    count, reduced = len(ins.operands) // 2, ins.attrs["dimensions"]
    kept = [d for d in range(ins.operands[0].shape.rank) if d not in reduced]
    inner = {kept[d]: sizes for d, sizes in part.items()}
    return [inner] * count + [_ALL] * count


def _reduce_window(ins: Instruction, part: Live) -> list[Live]:
    count, scan = len(ins.operands) // 2, prefix(ins)
    if scan is None:
        return [_ALL] * len(ins.operands)
    inner = {d: sizes for d, sizes in part.items() if d != scan.dimension or not scan.backward}
    return [inner] * count + [_ALL] * count


def _dot(ins: Instruction, part: Live) -> list[Live]:
    dims = DotDims.of(ins)
    batch, rows = len(dims.lhs_batch), len(dims.lhs_free)
    left = {d: part[o] for o, d in enumerate((*dims.lhs_batch, *dims.lhs_free)) if o in part}
    if has_packed_rhs(ins):
        return [left, _ALL]
    right = {d: part[o] for o, d in enumerate(dims.rhs_batch) if o in part}
    right |= {d: part[batch + rows + o] for o, d in enumerate(dims.rhs_free) if batch + rows + o in part}
    for d, sizes in product_stops(ins).items():
        left[d] = right[dims.rhs_contracting[dims.lhs_contracting.index(d)]] = sizes
    return [left, right]


_RULES: dict[str, Callable[[Instruction, Live], list[Live]]] = {
    "select": _select, "broadcast": _broadcast, "transpose": _transpose, "reverse": _reverse, "slice": _slice,
    "dynamic-slice": _dynamic_slice, "dynamic-update-slice": _dynamic_update_slice, "pad": _pad,
    "concatenate": _concatenate, "reduce": _reduce, "reduce-window": _reduce_window, "dot": _dot,
}  # fmt: skip


def product_stops(ins: Instruction) -> Live:
    """Return the sizes at which the sums of a dot stop, by contracted dimension of its left operand.

    All terms from there on are products of zeros. The kernel reads nothing of them, so its operands need not have them.
    """
    dims = DotDims.of(ins)
    (left, zero), (right, other) = map(fill_of, ins.operands)
    if zero is None or other is None or zero != 0 or other != 0:
        return _ALL
    from cyxla.xla.cpu.dot.emit import stops_early  # most products have no masked operands

    if not stops_early(ins):
        return _ALL
    pairs = zip(dims.lhs_contracting, dims.rhs_contracting, strict=True)
    stops = {d: left[d] | right[r] for d, r in pairs if d in left and r in right and ins.operands[0].shape.dims[d] > 1}
    return {d: sizes for d, sizes in stops.items() if len(sizes) <= _MAX_SIZES}


# --------------------------------------------------------------------------------------------------------------- groups
def sizes_of(live: Mapping[Instruction, Live]) -> dict[Instruction, None]:
    """Return the instructions that compute sizes."""
    return dict.fromkeys(v.instruction for part in live.values() for sizes in part.values() for v in sizes)


def cut_groups(computation: Computation, groups: Sequence[Group], live: Mapping[Instruction, Live]) -> list[Group]:
    """Set the live part of each group's iteration space; return the groups with those that compute sizes first."""
    producers = {out: group for group in groups for out in group.outputs}
    needs = {group: _needs(group, producers) for group in groups}
    ordered = _sizes_first(groups, needs, [producers[s] for s in sizes_of(live) if s in producers])
    numbers = {ins: n for n, ins in enumerate(computation.post_order())}
    computed: set[Instruction] = set()

    def known(part: Live) -> dict[int, tuple[Value, ...]]:
        return {
            d: tuple(sorted(sizes, key=lambda v: (numbers[v.instruction], v.index)))
            for d, sizes in sorted(part.items())
            if all(v.instruction in computed or v.instruction.opcode == "parameter" for v in sizes)
        }

    for group in ordered:
        for part in (group, *group.parts):
            if part.kind in _CUT_KINDS:
                part.live = known(_group_part(part, live))
            if part.kind in _STOPS:
                part.stops = known(_STOPS[part.kind](part, live))
        computed.update(group.outputs)
    return ordered


def _row_stops(group: Group, live: Mapping[Instruction, Live]) -> Live:
    """Return the sizes at which all passes over a row may stop, by the first dimension along a row."""
    reductions = [i for i in group.instructions if i.opcode == "reduce"]
    dims, first = reductions[0].operands[0].shape.dims, len(group.space)
    parts = [stops_of(i) for i in reductions if i.operands[0].shape.dims == dims]
    if len(parts) < len(reductions):
        return _ALL
    by_element = [o for o in group.outputs if prod(o.shape.dims) == prod(dims)]
    if not all(o in live for o in by_element):
        return _ALL
    parts += [reshaped(live[o], o.shape.dims, dims) for o in by_element]
    sizes = frozenset().union(*(part[first] for part in parts if first in part))
    return {first: sizes} if all(first in part for part in parts) and len(sizes) <= _MAX_SIZES else _ALL


_STOPS: dict[GroupKind, Callable[[Group, Mapping[Instruction, Live]], Live]] = {
    GroupKind.REDUCE: lambda group, live: stops_of(group.root),
    GroupKind.ROW: _row_stops,
    GroupKind.DOT: lambda group, live: product_stops(group.root),
}


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


def _group_part(group: Group, live: Mapping[Instruction, Live]) -> Live:
    """Return the part of a group's iteration space that its outputs' live parts need."""
    dims, joint = group.space, None
    for out in group.outputs:
        if not out.shape.is_array or out not in live:
            return _ALL
        part = _in_space(live[out], out.shape.dims, dims)
        joint = part if joint is None else join(joint, part)
    return {d: sizes for d, sizes in (joint or _ALL).items() if d < len(dims) and dims[d] > 1}


def _in_space(part: Live, dims: tuple[int, ...], space: tuple[int, ...]) -> Live:
    """Return a part of an array as one of an iteration space, of whose points it has one element or one row each."""
    if dims == space:
        return part
    length = prod(dims) // max(1, prod(space))
    return reshaped(part, dims, space if length == 1 else (*space, length))
