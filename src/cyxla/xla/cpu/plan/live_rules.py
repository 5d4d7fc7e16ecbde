"""Rules of live rows: the parts of operands that a part of a result depends on, by opcode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

from cyxla.types import ElementType
from cyxla.xla.cpu.kernel.cumulative_windows import prefix
from cyxla.xla.cpu.kernel.groups import Live
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import FORWARDING, constant_of, resolve
from cyxla.xla.cpu.plan.index_bounds import size_above
from cyxla.xla.cpu.plan.masks import fill_of, index_mask, is_identity, mask_of, reshaped
from cyxla.xla.hlo import OPCODES, Instruction
from cyxla.xla.hlo.combiners import combiner
from cyxla.xla.hlo.compaction_signature import has_zero_fill, is_pure_compaction
from cyxla.xla.passes.expand.dot import DotDims, has_packed_rhs

#: Live parts of the array leaves of a result by shape index, () for an array; a leaf without a part is never read.
Parts: TypeAlias = Mapping[tuple[int, ...], Live]

ALL: Live = {}  # every element matters
MAX_SIZES = 3  # sizes whose maximum bounds a dimension; with more, every element matters


def join(one: Live, other: Live) -> Live:
    """Return the least part that contains two."""
    joint = {d: one[d] | other[d] for d in one if d in other}
    return {d: sizes for d, sizes in joint.items() if len(sizes) <= MAX_SIZES}


def joint(parts: Parts) -> Live:
    """Return the least part that contains those of all leaves, which have the same dimensions."""
    return reduce(join, parts.values()) if parts else ALL


def operand_parts(ins: Instruction, parts: Parts) -> Sequence[Live]:
    """Return the parts of the operands that parts of the result depend on."""
    if ins.opcode in _LEAF_RULES:
        return _LEAF_RULES[ins.opcode](ins, parts)
    if not ins.shape.is_array:
        return [ALL] * len(ins.operands)
    part = parts[()]
    if ins.opcode in _RULES:
        return _RULES[ins.opcode](ins, part)
    if ins.opcode in FORWARDING:
        return [reshaped(part, ins.shape.dims, ins.operands[0].shape.dims)] + [ALL] * (len(ins.operands) - 1)
    if OPCODES[ins.opcode].elementwise or ins.opcode == "map":
        return _elementwise(ins, part)
    return [ALL] * len(ins.operands)


# ---------------------------------------------------------------------------------------------------- single results
def _elementwise(ins: Instruction, part: Live) -> list[Live]:
    return [part if o.shape.dims == ins.shape.dims else ALL for o in ins.operands]


def _select(ins: Instruction, part: Live) -> list[Live]:
    predicate, chosen, other = _elementwise(ins, part)
    return [predicate, {**chosen, **mask_of(ins.operands[0])}, other]


def _and(ins: Instruction, part: Live) -> list[Live]:
    """Return the parts of a conjunction: one operand matters only where a mask, the other one, is true."""
    left, right = _elementwise(ins, part)
    if ins.shape.dtype is not ElementType.PRED:
        return [left, right]
    if mask := mask_of(ins.operands[1]):
        return [{**left, **mask}, right]
    return [left, {**right, **mask_of(ins.operands[0])}]


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
    return [{d: sizes for d, sizes in part.items() if of[d] == to[d]}, *[ALL] * (len(ins.operands) - 1)]


def _dynamic_update_slice(ins: Instruction, part: Live) -> list[Live]:
    return [part, _read_update(ins, part), *[ALL] * (len(ins.operands) - 2)]


def _pad(ins: Instruction, part: Live) -> list[Live]:
    padding = ins.attrs["padding"]
    return [{d: sizes for d, sizes in part.items() if padding[d].low == 0 and padding[d].interior == 0}, ALL]


def _concatenate(ins: Instruction, part: Live) -> list[Live]:
    (axis,) = ins.attrs["dimensions"]
    beside = {d: sizes for d, sizes in part.items() if d != axis}
    return [part, *[beside] * (len(ins.operands) - 1)]


def _reduce_window(ins: Instruction, part: Live) -> list[Live]:
    count, scan = len(ins.operands) // 2, prefix(ins)
    if scan is None:
        return [ALL] * len(ins.operands)
    inner = {d: sizes for d, sizes in part.items() if d != scan.dimension or not scan.backward}
    return [inner] * count + [ALL] * count


def _dot(ins: Instruction, part: Live) -> list[Live]:
    dims = DotDims.of(ins)
    batch, rows = len(dims.lhs_batch), len(dims.lhs_free)
    left = {d: part[o] for o, d in enumerate((*dims.lhs_batch, *dims.lhs_free)) if o in part}
    if has_packed_rhs(ins):
        return [left, ALL]
    right = {d: part[o] for o, d in enumerate(dims.rhs_batch) if o in part}
    right |= {d: part[batch + rows + o] for o, d in enumerate(dims.rhs_free) if batch + rows + o in part}
    for d, sizes in product_stops(ins).items():
        left[d] = right[dims.rhs_contracting[dims.lhs_contracting.index(d)]] = sizes
    return [left, right]


def _fft(ins: Instruction, part: Live) -> list[Live]:
    return [fft_part(ins, part)]


def _gather(ins: Instruction, part: Live) -> list[Live]:
    operand, indices = (o.shape.dims for o in ins.operands)
    offsets, sizes, vector = ins.attrs["offset_dims"], ins.attrs["slice_sizes"], ins.attrs["index_vector_dim"]
    batch = [d for d in range(ins.shape.rank) if d not in offsets]
    vectors = [d for d in range(len(indices)) if d != vector]
    outside = {*ins.attrs["collapsed_slice_dims"], *ins.attrs["operand_batching_dims"]}
    inside = [d for d in range(len(operand)) if d not in outside]
    whole = {d: part[o] for o, d in zip(offsets, inside, strict=True) if o in part and sizes[d] == operand[d]}
    mapped = ins.attrs["start_index_map"]
    if len(mapped) == 1 and sizes[mapped[0]] == 1 and (size := size_above(ins.operands[1])) is not None:
        whole[mapped[0]] = frozenset((size,))
    return [whole, {v: part[o] for o, v in zip(batch, vectors, strict=True) if o in part}]


_RULES: dict[str, Callable[[Instruction, Live], list[Live]]] = {
    "select": _select, "and": _and, "broadcast": _broadcast, "transpose": _transpose, "reverse": _reverse,
    "slice": _slice, "dynamic-slice": _dynamic_slice, "dynamic-update-slice": _dynamic_update_slice, "pad": _pad,
    "concatenate": _concatenate, "reduce-window": _reduce_window, "dot": _dot, "gather": _gather, "fft": _fft,
    "bitcast-convert": _elementwise,
}  # fmt: skip


# --------------------------------------------------------------------------------------------------- several results
def _reduce(ins: Instruction, parts: Parts) -> list[Live]:
    count, reduced = len(ins.operands) // 2, ins.attrs["dimensions"]
    kept = [d for d in range(ins.operands[0].shape.rank) if d not in reduced]
    inner = {kept[d]: sizes for d, sizes in joint(parts).items()}
    return [inner] * count + [ALL] * count


def _sort(ins: Instruction, parts: Parts) -> list[Live]:
    return [sort_part(ins, parts)] * len(ins.operands)


def _custom_call(ins: Instruction, parts: Parts) -> list[Live]:
    if not is_pure_compaction(ins):
        return [ALL] * len(ins.operands)
    stops = compaction_stops(ins)
    inner = [{d: s for d, s in parts.get((k,), ALL).items() if d} for k in range(len(ins.operands) - 1)]
    return [stops, *({**part, **stops} for part in inner)]


def _scatter(ins: Instruction, parts: Parts) -> list[Live]:
    count, stops, attrs = (len(ins.operands) - 1) // 2, scatter_stops(ins), ins.attrs
    operand, updates = ins.operands[0].shape.dims, ins.operands[count + 1].shape.dims
    part, windows = joint(parts), attrs["update_window_dims"]
    outside = {*attrs["inserted_window_dims"], *attrs["input_batching_dims"]}
    inside = [d for d in range(len(operand)) if d not in outside]
    whole = {w: part[d] for w, d in zip(windows, inside, strict=True) if d in part and updates[w] == operand[d]}
    batch = [d for d in range(len(updates)) if d not in windows]
    vectors = [d for d in range(ins.operands[count].shape.rank) if d != attrs["index_vector_dim"]]
    whole |= {u: stops[v] for u, v in zip(batch, vectors, strict=True) if v in stops}
    return [part] * count + [stops] + [whole] * count


_LEAF_RULES: dict[str, Callable[[Instruction, Parts], list[Live]]] = {
    "reduce": _reduce, "sort": _sort, "custom-call": _custom_call, "scatter": _scatter,
}  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- stops
# The kernels of these instructions read nothing beyond some sizes, so that their operands need not have it.


def fft_part(ins: Instruction, part: Live) -> Live:
    """Return the part of an array of lines that are transformed, each on its own."""
    return {d: sizes for d, sizes in part.items() if d < ins.shape.rank - len(ins.attrs["fft_length"])}


def sort_part(ins: Instruction, parts: Parts) -> Live:
    """Return the part of its operands that a sort puts in order, and the part of its results that it writes.

    Elements that sort last because a mask made them do so stay where they are. The sort stops at the size of the mask
    if nothing beyond it is read.
    """
    part, (axis,) = joint(parts), ins.attrs["dimensions"]
    across = {d: sizes for d, sizes in part.items() if d != axis}
    present = present_size(ins)
    if present:  # the kernel ends there, and copies nothing beyond
        return across | {axis: present} if part.get(axis) == present else across
    masked, _, _ = masked_last(ins) if axis in part else (ALL, -1, None)
    sizes = part[axis] | masked[axis] if axis in masked else frozenset()
    return across | {axis: sizes} if 0 < len(sizes) <= MAX_SIZES else across


def present_size(ins: Instruction) -> frozenset[Value]:
    """Return the size below which elements are present for a sort that has their mask; empty for other sorts."""
    from cyxla.xla.cpu.sort.present import before_of  # most sorts are of all elements

    (axis,) = ins.attrs["dimensions"]
    mask = index_mask(ins.operands[-1])
    return mask[axis] if axis in mask and before_of(ins) is not None else frozenset()


def masked_last(ins: Instruction) -> tuple[Live, int, Any]:
    """Return the sizes, by dimension, beyond which a mask makes all elements sort last; the operand, and the element.

    There are no sizes if no mask does so.
    """
    from cyxla.xla.cpu.sort.order import Order  # most sorts are of all elements

    present = present_size(ins)
    if present:
        return {ins.attrs["dimensions"][0]: present}, -1, None
    order = Order.of(ins.called[0])
    if order is None:
        return ALL, -1, None
    masked, filler = fill_of(ins.operands[order.operand])
    is_last = filler is not None and order.is_last(ins.operands[order.operand].shape.dtype, filler)
    return (masked if is_last else ALL), order.operand, filler


def compaction_stops(ins: Instruction) -> Live:
    """Return the sizes at which a compaction stops: its mask is false from there on."""
    return false_from(ins.operands[0])


def false_from(predicate: Instruction) -> Live:
    """Return the sizes, by dimension, at and beyond which a predicate is false."""
    part, filler = fill_of(predicate)
    return part if filler is not None and not filler else ALL


def compaction_part(ins: Instruction, parts: Parts) -> Live:
    """Return the part of the rows of a compaction that are written: selected ones alone, or all that are read."""
    read = joint({index: part for index, part in parts.items() if index != (len(ins.shape.elements) - 1,)})
    if 0 not in read:
        return ALL
    from cyxla.xla.evaluator.custom_calls import options_of  # most programs have no custom calls

    count = resolve(ins, (len(ins.shape.elements) - 1,))
    if read[0] == {count} or not has_zero_fill(options_of(ins)):
        return {0: frozenset((count,))}
    sizes = (read[0] - {count}) | compaction_stops(ins).get(0, frozenset())
    return {0: sizes} if len(sizes) <= MAX_SIZES else ALL


def scatter_stops(ins: Instruction) -> Live:
    """Return the sizes at which a scatter stops, by dimension of its indices.

    No later window fits into the operand, or no later update changes an element.
    """
    count, attrs = (len(ins.operands) - 1) // 2, ins.attrs
    operand, updates = ins.operands[0].shape.dims, ins.operands[count + 1].shape.dims
    outside = {*attrs["inserted_window_dims"], *attrs["input_batching_dims"]}
    inside = [d for d in range(len(operand)) if d not in outside]
    extents = dict(zip(inside, (updates[w] for w in attrs["update_window_dims"]), strict=True))
    for d, (part, filler) in zip(attrs["scatter_dims_to_operand_dims"], _index_fills(ins), strict=True):
        if filler is not None and not 0 <= int(filler) <= operand[d] - extents.get(d, 1):
            return {d: sizes for d, sizes in part.items() if d != attrs["index_vector_dim"]}
    return _neutral_updates(ins) if count == 1 else ALL


def _neutral_updates(ins: Instruction) -> Live:
    """Return the sizes, by dimension of the indices, at which a scatter stops: no later update changes anything."""
    operand, indices, updates = ins.operands
    part, filler = fill_of(updates)
    opcode = None if filler is None else combiner(ins.called[0])
    if opcode is None or not is_identity(opcode, filler, constant_of(operand), operand.shape.dtype):
        return ALL
    batch = [d for d in range(updates.shape.rank) if d not in ins.attrs["update_window_dims"]]
    vectors = [d for d in range(indices.shape.rank) if d != ins.attrs["index_vector_dim"]]
    return {v: part[u] for u, v in zip(batch, vectors, strict=True) if u in part}


def _index_fills(ins: Instruction) -> list[tuple[Live, Any]]:
    """Return the fills of the indices of a scatter (see `fill_of`), for each element of an index vector."""
    indices, dimension = ins.operands[(len(ins.operands) - 1) // 2], ins.attrs["index_vector_dim"]
    count = len(ins.attrs["scatter_dims_to_operand_dims"])
    if indices.opcode != "concatenate" or indices.attrs["dimensions"] != (dimension,):
        return [fill_of(indices)] * count
    if len(indices.operands) != count:
        return [(ALL, None)] * count
    fills = []
    for column in indices.operands:
        source = _source(column)
        part, filler = fill_of(source)
        fills.append((reshaped(part, source.shape.dims, column.shape.dims), filler))
    return fills


def update_part(ins: Instruction, parts: Parts) -> Live:
    """Return the part of the update of a dynamic-update-slice that changes an element which is read.

    Loops run beyond it to the end of a block, and write there what the operand has: the update needs these elements.
    """
    return {**_read_update(ins, parts.get((), ALL)), **_unchanged_from(ins)}


def _read_update(ins: Instruction, part: Live) -> Live:
    """Return the part of the update of a dynamic-update-slice that lies in a part of its result."""
    whole, new = ins.shape.dims, ins.operands[1].shape.dims
    return {d: sizes for d, sizes in part.items() if whole[d] == new[d]}


def _unchanged_from(ins: Instruction) -> Live:
    """Return the sizes, by dimension, at and beyond which an update is what its operand has there already."""
    whole, new, *starts = ins.operands
    choice = _source(new)
    if choice.opcode != "select" or choice.operands[0].shape.dims != choice.shape.dims:
        return ALL
    old = _source(choice.operands[2])
    if old.opcode != "dynamic-slice" or old.shape.dims != new.shape.dims:
        return ALL
    same = all(resolve(a) == resolve(b) for a, b in zip(old.operands, (whole, *starts), strict=True))
    return reshaped(mask_of(choice.operands[0]), choice.shape.dims, new.shape.dims) if same else ALL


def _source(ins: Instruction) -> Instruction:
    while ins.opcode in FORWARDING and ins.operands[0].shape.is_array:
        ins = ins.operands[0]
    return ins


def product_stops(ins: Instruction) -> Live:
    """Return the sizes at which the sums of a dot stop, by contracted dimension of its left operand.

    All terms from there on are products of zeros. The kernel reads nothing of them, so its operands need not have them.
    """
    dims = DotDims.of(ins)
    (left, zero), (right, other) = map(fill_of, ins.operands)
    if zero is None or other is None or zero != 0 or other != 0:
        return ALL
    from cyxla.xla.cpu.dot.emit import stops_early  # most products have no masked operands

    if not stops_early(ins):
        return ALL
    pairs = zip(dims.lhs_contracting, dims.rhs_contracting, strict=True)
    stops = {d: left[d] | right[r] for d, r in pairs if d in left and r in right and ins.operands[0].shape.dims[d] > 1}
    return {d: sizes for d, sizes in stops.items() if len(sizes) <= MAX_SIZES}
