"""Rules for opcodes that move data: merge chains, and remove moves without effect.

Before::

    a = f32[2,6] reshape(f32[12] x)
    b = f32[12] reshape(a)
    c = f32[12] slice(b), slice={[2:10]}
    ROOT d = f32[4] slice(c), slice={[0:8:2]}

After::

    ROOT d = f32[4] slice(x), slice={[2:10:2]}
"""

# ruff: noqa: E501  a rule is a line

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from cyxla.types import Shape
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.attributes import PaddingDim, SliceDim
from cyxla.xla.passes.engine.pattern import Match, Uniform, Var, attr, compute, op, uniform_value
from cyxla.xla.passes.engine.rewrite import Rule, any_of, rule
from cyxla.xla.passes.engine.rewrite_helpers import Writer

x, y, v, w, c = Var("x"), Var("y"), Var("v"), Var("w"), Uniform("c")
p, q = attr("p"), attr("q")
_Dims = tuple[int, ...]


def _writer(m: Match) -> Writer:
    return Writer(m.root.computation)


def _same_shape(m: Match) -> bool:
    return bool(m.x.shape.compatible(m.root.shape))


# --- permutations of dimensions ---


def _compose(p: _Dims, q: _Dims) -> _Dims:
    return tuple(p[d] for d in q)


def _compose_broadcasts(p: _Dims, q: _Dims) -> _Dims:
    return tuple(q[d] for d in p)


def _symmetric_difference(p: _Dims, q: _Dims) -> _Dims:
    return tuple(sorted(set(p) ^ set(q)))


def _in_order(m: Match) -> bool:
    return tuple(m.p) == tuple(range(len(m.p)))


def _is_permutation(m: Match) -> bool:
    return len(m.p) == m.root.shape.rank and not _in_order(m)


def _inverse(p: _Dims) -> _Dims:
    return tuple(int(d) for d in np.argsort(p))


def _moves_only_unit_dims(m: Match) -> bool:
    """Return True if a transpose keeps the order of all dimensions but those of size 1."""
    moved_dims = [d for d in m.p if m.x.shape.dims[d] != 1]
    return moved_dims == sorted(moved_dims) and not _in_order(m)


def _transpose_broadcast(m: Match) -> Instruction:
    """broadcast of x to the transposed dimensions.."""
    position = _inverse(m.q)
    return _writer(m).op("broadcast", m.x, shape=m.root.shape.logical, dimensions=tuple(position[d] for d in m.p))


# --- dimensions of size 1 ---


def unit_map(before: Sequence[int], after: Sequence[int]) -> dict[int, int] | None:
    """Map the dimensions of `before` to those of `after`, or return None if they differ in more than sizes 1.

    Dimensions at matching positions are matched even if of size 1; those without a partner are left out.
    """
    dim_map, i, j = {}, 0, 0
    while i < len(before) or j < len(after):
        if i < len(before) and j < len(after) and before[i] == after[j]:
            dim_map[i] = j
            i, j = i + 1, j + 1
        elif i < len(before) and before[i] == 1:
            i += 1
        elif j < len(after) and after[j] == 1:
            j += 1
        else:
            return None
    return dim_map


def _broadcast_reshaped(m: Match) -> Instruction | None:
    """broadcast of x, if the reshape only adds dimensions of size 1.."""
    inner = m.root.operands[0]
    positions = unit_map(m.x.shape.dims, inner.shape.dims)
    if positions is None or len(positions) != m.x.shape.rank or m.x.shape.rank >= inner.shape.rank:
        return None
    dims = tuple(m.p[positions[d]] for d in range(m.x.shape.rank))
    return _writer(m).op("broadcast", m.x, shape=m.root.shape.logical, dimensions=dims)


def _reshape_broadcast(m: Match) -> Instruction | None:
    """broadcast of x to the result's shape, if the reshape adds or drops dimensions of size 1.."""
    inner = m.root.operands[0]
    positions = unit_map(inner.shape.dims, m.root.shape.dims)
    if positions is None or any(d not in positions for d in m.p):
        return None
    dims = tuple(positions[d] for d in m.p)
    return _writer(m).op("broadcast", m.x, shape=m.root.shape.logical, dimensions=dims)


def _reshape_transposed(m: Match) -> Instruction | None:
    """transpose of the reshape of x, if the reshape only drops dimensions of size 1.."""
    inner = m.root.operands[0]
    positions = unit_map(inner.shape.dims, m.root.shape.dims)
    if positions is None or len(positions) != m.root.shape.rank or m.root.shape.rank >= inner.shape.rank:
        return None
    kept_dims = [m.p[d] for d in sorted(positions)]
    write, order = _writer(m), sorted(kept_dims)
    narrow = write.reshape(m.x, [m.x.shape.dims[d] for d in order])
    return write.transpose(narrow, [order.index(d) for d in kept_dims])


# --- reverse ---


def _is_noop_reverse(m: Match) -> bool:
    return all(m.x.shape.dims[d] == 1 for d in m.p)


def _reverse_broadcast(m: Match) -> Instruction | None:
    """broadcast of x, reversed along its own dimensions only.."""
    reversed_dims = tuple(m.p.index(d) for d in m.q if d in m.p)
    if len(reversed_dims) == len(m.q):
        return None
    write = _writer(m)
    inner = write.op("reverse", m.x, dimensions=reversed_dims) if reversed_dims else m.x
    return write.op("broadcast", inner, shape=m.root.shape.logical, dimensions=m.p)


# --- slice ---


def _compose_slices(p: tuple[SliceDim, ...], q: tuple[SliceDim, ...]) -> tuple[SliceDim, ...]:
    """Return the slice q of a slice p."""
    result = []
    for (start, _, stride), (first, limit, step) in zip(p, q, strict=True):
        count = max(0, -((first - limit) // step))
        begin, distance = start + first * stride, stride * step
        end = begin + (count - 1) * distance + 1 if count else begin
        result.append(SliceDim(begin, end, distance) if count > 1 else SliceDim(begin, end))
    return tuple(result)


def _composable(m: Match) -> bool:
    return 0 not in m.root.shape.dims


def _slice_broadcast(m: Match) -> Instruction:
    """broadcast of the slice of x along its own dimensions.."""
    ranges = tuple(m.q[d] for d in m.p)
    write, dims = _writer(m), [m.root.shape.dims[d] for d in m.p]
    is_whole = tuple(dims) == m.x.shape.dims
    inner = m.x if is_whole else write.op("slice", m.x, shape=m.x.shape.with_dims(dims), slice=ranges)
    return write.op("broadcast", inner, shape=m.root.shape.logical, dimensions=m.p)


def _slice_concatenate(m: Match) -> Instruction | None:
    """slice of the one operand of concatenate that holds the result.."""
    concatenated = m.root.operands[0]
    if concatenated.opcode != "concatenate" or 0 in m.root.shape.dims:
        return None
    (axis,), ranges = concatenated.attrs["dimensions"], m.root.attrs["slice"]
    start, limit, stride = ranges[axis]
    offset = 0
    for part in concatenated.operands:
        size = part.shape.dims[axis]
        if offset <= start and limit <= offset + size:
            inside = (*ranges[:axis], SliceDim(start - offset, limit - offset, stride), *ranges[axis + 1 :])
            return _writer(m).op("slice", part, shape=m.root.shape.logical, slice=inside)
        offset += size
    return None


def _slice_pad(m: Match) -> Instruction | None:
    """slice of x, if it contains no padding.."""
    ranges = []
    for (low, _, interior), (start, limit, stride), size in zip(m.p, m.q, m.x.shape.dims, strict=True):
        if interior or low < 0 or not low <= start <= limit <= low + size:
            return None
        ranges.append(SliceDim(start - low, limit - low, stride))
    return _writer(m).op("slice", m.x, shape=m.root.shape.logical, slice=tuple(ranges))


def _slice_scatter(m: Match) -> Instruction | None:
    """scatter to the slice, if it cuts elements at ends off, whose updates are then out of bounds.."""
    scatter, ranges = m.root.operands[0], m.root.attrs["slice"]
    if scatter.opcode != "scatter" or len(scatter.operands) != 3 or len(scatter.users) != 1:
        return None
    operand, indices, updates = scatter.operands
    attrs, sizes = scatter.attrs, operand.shape.dims
    if any(r.start or r.stride != 1 for r in ranges):
        return None
    single = {*attrs["inserted_window_dims"]} & {*attrs["scatter_dims_to_operand_dims"]}
    if any(r.limit < n and d not in single for d, (r, n) in enumerate(zip(ranges, sizes, strict=True))):
        return None
    shape = m.root.shape.logical
    part = _writer(m).op("slice", operand, shape=shape, slice=ranges)
    computation = m.root.computation
    return computation.add("scatter", (part, indices, updates), attrs, called=scatter.called, shape=shape)


def _constant_indices(m: Match) -> Instruction | None:
    """slice, if all start indices are constants.."""
    source, *indices = m.root.operands
    numbers = [uniform_value(i) for i in indices]
    sizes = m.root.shape.dims
    if len(indices) != len(sizes) or any(n is None for n in numbers):
        return None
    ranges = []
    for number, size, dim_size in zip(numbers, sizes, source.shape.dims, strict=True):
        assert number is not None
        start = min(max(int(number.reshape(())), 0), dim_size - size)
        ranges.append(SliceDim(start, start + size))
    return _writer(m).op("slice", source, shape=m.root.shape.logical, slice=tuple(ranges))


def _take_all(m: Match) -> Instruction | None:
    """the operand, if the sizes are its own.."""
    source: Instruction = m.root.operands[0]
    return source if source.shape.compatible(m.root.shape) else None


def _update_all(m: Match) -> Instruction | None:
    """the update, if it covers everything, or the operand, if the update is empty.."""
    source, update = m.root.operands[:2]
    if update.shape.compatible(m.root.shape):
        return update
    return source if update.shape.size == 0 else None


# --- pad ---


def _is_noop_pad(m: Match) -> bool:
    return all(d == (0, 0, 0) or (d[:2] == (0, 0) and n < 2) for d, n in zip(m.p, m.x.shape.dims, strict=True))


def _only_crops(m: Match) -> bool:
    return any(m.p) and all(low <= 0 and high <= 0 and not inner for low, high, inner in m.p) and not _is_noop_pad(m)


def _crop(m: Match) -> Instruction:
    """slice of x.."""
    ranges = tuple(SliceDim(-low, n + high) for (low, high, _), n in zip(m.p, m.x.shape.dims, strict=True))
    return _writer(m).op("slice", m.x, shape=m.root.shape.logical, slice=ranges)


def _all_padding(m: Match) -> Instruction | None:
    """broadcast of the padding value, if x is empty or a broadcast of that value.."""
    same = m.x.opcode == "broadcast" and m.x.operands[0] is m.v
    return _writer(m).broadcast(m.v, m.root.shape.logical) if same or m.x.shape.size == 0 else None


def _grows(m: Match) -> bool:
    return all(low >= 0 and high >= 0 and not inner for low, high, inner in (*m.p, *m.q))


def _add_paddings(p: Sequence[PaddingDim], q: Sequence[PaddingDim]) -> tuple[PaddingDim, ...]:
    return tuple(PaddingDim(a.low + b.low, a.high + b.high) for a, b in zip(p, q, strict=True))


# --- concatenate ---


def _flatten_concatenate(m: Match) -> Instruction | None:
    """concatenate without empty operands, and with nested ones flattened that have no other user.."""
    ins = m.root
    (axis,) = ins.attrs["dimensions"]
    if len(ins.operands) == 1:
        return ins.operands[0] if ins.operands[0].shape.compatible(ins.shape) else None
    parts: list[Instruction] = []
    for part in ins.operands:
        inner = part.opcode == "concatenate" and part.attrs["dimensions"] == (axis,) and set(part.users) == {ins}
        parts.extend(part.operands if inner else [part])
    parts = [o for o in parts if o.shape.dims[axis]]
    if not parts or parts == list(ins.operands):
        return None
    return (
        _writer(m).op("concatenate", *parts, shape=ins.shape.logical, dimensions=(axis,))
        if len(parts) > 1
        else parts[0]
    )


def _merge_operands(m: Match) -> Instruction | None:
    """concatenate with adjacent slices of one array, and broadcasts of one scalar, merged.."""
    ins = m.root
    (axis,) = ins.attrs["dimensions"]
    if len(ins.operands) < 2:
        return None
    merged: list[Instruction] = [ins.operands[0]]
    for part in ins.operands[1:]:
        merged_pair = _merge_pair(merged[-1], part, axis, _writer(m))
        merged[-1:] = [merged[-1], part] if merged_pair is None else [merged_pair]
    if len(merged) == len(ins.operands):
        return None
    return (
        _writer(m).op("concatenate", *merged, shape=ins.shape.logical, dimensions=(axis,))
        if len(merged) > 1
        else merged[0]
    )


def _merge_pair(a: Instruction, b: Instruction, axis: int, write: Writer) -> Instruction | None:
    if a.opcode != b.opcode or a.opcode not in ("slice", "broadcast") or a.operands[0] is not b.operands[0]:
        return None
    dims = list(a.shape.dims)
    dims[axis] += b.shape.dims[axis]
    source, shape = a.operands[0], a.shape.with_dims(dims)
    if a.opcode == "broadcast":
        if axis in a.attrs["dimensions"] or a.attrs["dimensions"] != b.attrs["dimensions"]:
            return None
        return write.op("broadcast", source, shape=shape, dimensions=a.attrs["dimensions"])
    before, after = a.attrs["slice"], b.attrs["slice"]
    is_same = [before[d] == after[d] for d in range(len(dims)) if d != axis]
    first, second = before[axis], after[axis]
    if not all(is_same) or first.stride != 1 or second.stride != 1 or first.limit != second.start:
        return None
    ranges = (*before[:axis], SliceDim(first.start, second.limit), *before[axis + 1 :])
    return write.op("slice", source, shape=shape, slice=ranges)


# --- splats ---


def _uniform_result(m: Match) -> Instruction | None:
    """broadcast of the number to the result's shape, if x is a splat.."""
    if m.root.opcode == "broadcast" and m.x.opcode == "constant" and m.x.shape.rank == 0:
        return None  # canonical form
    scalar = m.x.operands[0] if m.x.opcode == "broadcast" else m.x
    if scalar.shape.rank:
        return None
    if m.x.shape.compatible(m.root.shape):
        value: Instruction = m.x
        return value
    return _writer(m).broadcast(scalar, m.root.shape.logical)


def _as_scalar(m: Match) -> Instruction | None:
    """broadcast of the scalar that x reshapes, if the result repeats one element.."""
    if m.x.shape.size != 1 or m.x.shape.rank == 0:
        return None
    write = _writer(m)
    return write.op("broadcast", write.reshape(m.x, ()), shape=m.root.shape.logical, dimensions=())


def _repeats_one_element(m: Match) -> bool:
    shape: Shape = m.root.shape
    return m.x.shape.size == 1 and m.x.shape.rank > 0 and shape.size > 1


# fmt: off
#     pattern                                                       becomes                                    only if
MOVEMENT: Final[list[Rule]] = [
    rule(op("reshape", x),                                          x,                                         when=_same_shape),
    rule(op("reshape", op("reshape", x)),                           op("reshape", x)),
    rule(op("transpose", x, dimensions=p),                          x,                                         when=_in_order),
    rule(op("transpose", op("transpose", x, dimensions=p), dimensions=q), op("transpose", x, dimensions=compute(_compose, p, q))),
    rule(op("transpose", op("broadcast", x, dimensions=p), dimensions=q), _transpose_broadcast),
    rule(op("transpose", x, dimensions=p),                          op("reshape", x),                          when=_moves_only_unit_dims),
    rule(op("broadcast", x, dimensions=p),                          x,                                         when=lambda m: _same_shape(m) and _in_order(m)),
    rule(op("broadcast", x, dimensions=p),                          op("transpose", x, dimensions=compute(_inverse, p)), when=_is_permutation),
    rule(op("broadcast", op("broadcast", x, dimensions=p), dimensions=q), op("broadcast", x, dimensions=compute(_compose_broadcasts, p, q))),
    rule(op("broadcast", op("reshape", x), dimensions=p),           _broadcast_reshaped),
    rule(op("reshape", op("broadcast", x, dimensions=p)),           _reshape_broadcast),
    rule(op("reshape", op("transpose", x, dimensions=p)),           _reshape_transposed),
    *[rule(op(o, Uniform("x")),                               _uniform_result) for o in ("reshape", "transpose", "reverse", "slice", "broadcast")],
    rule(op("broadcast", x),                                        _as_scalar,                                when=_repeats_one_element),
    rule(op("reverse", x, dimensions=p),                            x,                                         when=_is_noop_reverse),
    rule(op("reverse", op("reverse", x, dimensions=p), dimensions=q), op("reverse", x, dimensions=compute(_symmetric_difference, p, q))),
    rule(op("reverse", op("broadcast", x, dimensions=p), dimensions=q), _reverse_broadcast),
    rule(op("slice", x),                                            x,                                         when=_same_shape),
    rule(op("slice", op("slice", x, slice=p), slice=q),             op("slice", x, slice=compute(_compose_slices, p, q)), when=_composable),
    rule(op("slice", op("broadcast", x, dimensions=p), slice=q),    _slice_broadcast),
    rule(op("slice", op("pad", x, v, padding=p), slice=q),          _slice_pad),
    *any_of(["slice"],                                              _slice_concatenate),
    *any_of(["slice"],                                              _slice_scatter),
    *any_of(["dynamic-slice"],                                      _take_all),
    *any_of(["dynamic-slice"],                                      _constant_indices),
    *any_of(["dynamic-update-slice"],                               _update_all),
    rule(op("pad", x, v, padding=p),                                x,                                         when=_is_noop_pad),
    rule(op("pad", x, v, padding=p),                                _crop,                                     when=_only_crops),
    rule(op("pad", x, v, padding=p),                                _all_padding),
    rule(op("pad", op("pad", x, v, padding=p), v, padding=q),       op("pad", x, v, padding=compute(_add_paddings, p, q)), when=_grows),
    *any_of(["concatenate"],                                        _flatten_concatenate),
    *any_of(["concatenate"],                                        _merge_operands),
]
# fmt: on
