"""Rules for opcodes that move data: chains of them become one, and those that move nothing vanish.

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
from cyxla.xla.passes.engine.writer import Writer

x, y, v, w, c = Var("x"), Var("y"), Var("v"), Var("w"), Uniform("c")
p, q = attr("p"), attr("q")
_Dims = tuple[int, ...]


def _write(m: Match) -> Writer:
    return Writer(m.root.computation)


def _same_shape(m: Match) -> bool:
    return bool(m.x.shape.compatible(m.root.shape))


# --- orders of dimensions ---


def _compose(p: _Dims, q: _Dims) -> _Dims:
    return tuple(p[d] for d in q)


def _spread(p: _Dims, q: _Dims) -> _Dims:
    return tuple(q[d] for d in p)


def _symmetric_difference(p: _Dims, q: _Dims) -> _Dims:
    return tuple(sorted(set(p) ^ set(q)))


def _in_order(m: Match) -> bool:
    return tuple(m.p) == tuple(range(len(m.p)))


def _is_permutation(m: Match) -> bool:
    return len(m.p) == m.root.shape.rank and not _in_order(m)


def _inverse(p: _Dims) -> _Dims:
    return tuple(int(d) for d in np.argsort(p))


def _moves_only_ones(m: Match) -> bool:
    """Whether a transpose leaves all dimensions but those of size 1 in their order."""
    moved = [d for d in m.p if m.x.shape.dims[d] != 1]
    return moved == sorted(moved) and not _in_order(m)


def _transpose_broadcast(m: Match) -> Instruction:
    """Broadcast x to the transposed places."""
    place = _inverse(m.q)
    return _write(m).op("broadcast", m.x, shape=m.root.shape.logical, dimensions=tuple(place[d] for d in m.p))


# --- dimensions of size 1 ---


def unit_map(before: Sequence[int], after: Sequence[int]) -> dict[int, int] | None:
    """Which dimension of `after` each dimension of `before` becomes, where they differ in sizes 1 alone.

    Dimensions that stand side by side in both are matched even if of size 1; those without a partner are left out.
    """
    found, i, j = {}, 0, 0
    while i < len(before) or j < len(after):
        if i < len(before) and j < len(after) and before[i] == after[j]:
            found[i] = j
            i, j = i + 1, j + 1
        elif i < len(before) and before[i] == 1:
            i += 1
        elif j < len(after) and after[j] == 1:
            j += 1
        else:
            return None
    return found


def _broadcast_reshaped(m: Match) -> Instruction | None:
    """Broadcast x itself, where the reshape only adds dimensions of size 1."""
    inner = m.root.operands[0]
    places = unit_map(m.x.shape.dims, inner.shape.dims)
    if places is None or len(places) != m.x.shape.rank or m.x.shape.rank >= inner.shape.rank:
        return None
    dims = tuple(m.p[places[d]] for d in range(m.x.shape.rank))
    return _write(m).op("broadcast", m.x, shape=m.root.shape.logical, dimensions=dims)


def _reshape_broadcast(m: Match) -> Instruction | None:
    """Broadcast x to the result's shape, where the reshape adds or drops dimensions of size 1."""
    inner = m.root.operands[0]
    places = unit_map(inner.shape.dims, m.root.shape.dims)
    if places is None or any(d not in places for d in m.p):
        return None
    dims = tuple(places[d] for d in m.p)
    return _write(m).op("broadcast", m.x, shape=m.root.shape.logical, dimensions=dims)


def _reshape_transposed(m: Match) -> Instruction | None:
    """Transpose the reshape of x, where the reshape only drops dimensions of size 1."""
    inner = m.root.operands[0]
    places = unit_map(inner.shape.dims, m.root.shape.dims)
    if places is None or len(places) != m.root.shape.rank or m.root.shape.rank >= inner.shape.rank:
        return None
    kept = [m.p[d] for d in sorted(places)]
    write, order = _write(m), sorted(kept)
    narrow = write.reshape(m.x, [m.x.shape.dims[d] for d in order])
    return write.transpose(narrow, [order.index(d) for d in kept])


# --- reverse ---


def _reverses_nothing(m: Match) -> bool:
    return all(m.x.shape.dims[d] == 1 for d in m.p)


def _reverse_broadcast(m: Match) -> Instruction | None:
    """Broadcast x, reversed along its own dimensions alone."""
    own = tuple(m.p.index(d) for d in m.q if d in m.p)
    if len(own) == len(m.q):
        return None
    write = _write(m)
    inner = write.op("reverse", m.x, dimensions=own) if own else m.x
    return write.op("broadcast", inner, shape=m.root.shape.logical, dimensions=m.p)


# --- slice ---


def _compose_slices(p: tuple[SliceDim, ...], q: tuple[SliceDim, ...]) -> tuple[SliceDim, ...]:
    """The slice q of a slice p."""
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
    """Broadcast the slice of x along its own dimensions."""
    own = tuple(m.q[d] for d in m.p)
    write, dims = _write(m), [m.root.shape.dims[d] for d in m.p]
    whole = tuple(dims) == m.x.shape.dims
    inner = m.x if whole else write.op("slice", m.x, shape=m.x.shape.with_dims(dims), slice=own)
    return write.op("broadcast", inner, shape=m.root.shape.logical, dimensions=m.p)


def _slice_concatenate(m: Match) -> Instruction | None:
    """Slice the one operand of concatenate that holds all of it."""
    joined = m.root.operands[0]
    if joined.opcode != "concatenate" or 0 in m.root.shape.dims:
        return None
    (axis,), ranges = joined.attrs["dimensions"], m.root.attrs["slice"]
    start, limit, stride = ranges[axis]
    offset = 0
    for part in joined.operands:
        size = part.shape.dims[axis]
        if offset <= start and limit <= offset + size:
            inside = (*ranges[:axis], SliceDim(start - offset, limit - offset, stride), *ranges[axis + 1 :])
            return _write(m).op("slice", part, shape=m.root.shape.logical, slice=inside)
        offset += size
    return None


def _slice_pad(m: Match) -> Instruction | None:
    """Slice x itself, where nothing of the padding is left."""
    ranges = []
    for (low, _, interior), (start, limit, stride), size in zip(m.p, m.q, m.x.shape.dims, strict=True):
        if interior or low < 0 or not low <= start <= limit <= low + size:
            return None
        ranges.append(SliceDim(start - low, limit - low, stride))
    return _write(m).op("slice", m.x, shape=m.root.shape.logical, slice=tuple(ranges))


def _constant_indices(m: Match) -> Instruction | None:
    """Write a slice, where every start index is a constant."""
    source, *indices = m.root.operands
    numbers = [uniform_value(i) for i in indices]
    sizes = m.root.shape.dims
    if len(indices) != len(sizes) or any(n is None for n in numbers):
        return None
    ranges = []
    for number, size, whole in zip(numbers, sizes, source.shape.dims, strict=True):
        assert number is not None
        start = min(max(int(number.reshape(())), 0), whole - size)
        ranges.append(SliceDim(start, start + size))
    return _write(m).op("slice", source, shape=m.root.shape.logical, slice=tuple(ranges))


def _take_all(m: Match) -> Instruction | None:
    """Write the operand, where the sizes are its own."""
    source: Instruction = m.root.operands[0]
    return source if source.shape.compatible(m.root.shape) else None


def _update_all(m: Match) -> Instruction | None:
    """Write the update, where it covers everything; the operand, where it is empty."""
    source, update = m.root.operands[:2]
    if update.shape.compatible(m.root.shape):
        return update
    return source if update.shape.size == 0 else None


# --- pad ---


def _pads_nothing(m: Match) -> bool:
    return all(d == (0, 0, 0) or (d[:2] == (0, 0) and n < 2) for d, n in zip(m.p, m.x.shape.dims, strict=True))


def _only_crops(m: Match) -> bool:
    return any(m.p) and all(low <= 0 and high <= 0 and not inner for low, high, inner in m.p) and not _pads_nothing(m)


def _crop(m: Match) -> Instruction:
    """Write a slice."""
    ranges = tuple(SliceDim(-low, n + high) for (low, high, _), n in zip(m.p, m.x.shape.dims, strict=True))
    return _write(m).op("slice", m.x, shape=m.root.shape.logical, slice=ranges)


def _padding_alone(m: Match) -> Instruction | None:
    """Broadcast the padding value, where x is empty or holds that value."""
    same = m.x.opcode == "broadcast" and m.x.operands[0] is m.v
    return _write(m).broadcast(m.v, m.root.shape.logical) if same or m.x.shape.size == 0 else None


def _grows(m: Match) -> bool:
    return all(low >= 0 and high >= 0 and not inner for low, high, inner in (*m.p, *m.q))


def _add_up(p: Sequence[PaddingDim], q: Sequence[PaddingDim]) -> tuple[PaddingDim, ...]:
    return tuple(PaddingDim(a.low + b.low, a.high + b.high) for a, b in zip(p, q, strict=True))


# --- concatenate ---


def _join(m: Match) -> Instruction | None:
    """Leave out empty operands, and open up joins that nobody else reads."""
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
        _write(m).op("concatenate", *parts, shape=ins.shape.logical, dimensions=(axis,)) if len(parts) > 1 else parts[0]
    )


def _join_slices(m: Match) -> Instruction | None:
    """Write one slice for neighbouring slices of one array, one broadcast for broadcasts of one scalar."""
    ins = m.root
    (axis,) = ins.attrs["dimensions"]
    if len(ins.operands) < 2:
        return None
    merged: list[Instruction] = [ins.operands[0]]
    for part in ins.operands[1:]:
        both = _neighbours(merged[-1], part, axis, _write(m))
        merged[-1:] = [merged[-1], part] if both is None else [both]
    if len(merged) == len(ins.operands):
        return None
    return (
        _write(m).op("concatenate", *merged, shape=ins.shape.logical, dimensions=(axis,))
        if len(merged) > 1
        else merged[0]
    )


def _neighbours(a: Instruction, b: Instruction, axis: int, write: Writer) -> Instruction | None:
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
    others = [before[d] == after[d] for d in range(len(dims)) if d != axis]
    first, second = before[axis], after[axis]
    if not all(others) or first.stride != 1 or second.stride != 1 or first.limit != second.start:
        return None
    joined = (*before[:axis], SliceDim(first.start, second.limit), *before[axis + 1 :])
    return write.op("slice", source, shape=shape, slice=joined)


# --- arrays of one number ---


def _still_uniform(m: Match) -> Instruction | None:
    """Broadcast the number to the result's shape, where x is one number everywhere."""
    if m.root.opcode == "broadcast" and m.x.opcode == "constant" and m.x.shape.rank == 0:
        return None  # as it should be
    scalar = m.x.operands[0] if m.x.opcode == "broadcast" else m.x
    if scalar.shape.rank:
        return None
    if m.x.shape.compatible(m.root.shape):
        found: Instruction = m.x
        return found
    return _write(m).broadcast(scalar, m.root.shape.logical)


def _as_scalar(m: Match) -> Instruction | None:
    """Read the scalar that x is a reshape of, where the result repeats one element."""
    if m.x.shape.size != 1 or m.x.shape.rank == 0:
        return None
    write = _write(m)
    return write.op("broadcast", write.reshape(m.x, ()), shape=m.root.shape.logical, dimensions=())


def _spreads(m: Match) -> bool:
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
    rule(op("transpose", x, dimensions=p),                          op("reshape", x),                          when=_moves_only_ones),
    rule(op("broadcast", x, dimensions=p),                          x,                                         when=lambda m: _same_shape(m) and _in_order(m)),
    rule(op("broadcast", x, dimensions=p),                          op("transpose", x, dimensions=compute(_inverse, p)), when=_is_permutation),
    rule(op("broadcast", op("broadcast", x, dimensions=p), dimensions=q), op("broadcast", x, dimensions=compute(_spread, p, q))),
    rule(op("broadcast", op("reshape", x), dimensions=p),           _broadcast_reshaped),
    rule(op("reshape", op("broadcast", x, dimensions=p)),           _reshape_broadcast),
    rule(op("reshape", op("transpose", x, dimensions=p)),           _reshape_transposed),
    *[rule(op(o, Uniform("x")),                               _still_uniform) for o in ("reshape", "transpose", "reverse", "slice", "broadcast")],
    rule(op("broadcast", x),                                        _as_scalar,                                when=_spreads),
    rule(op("reverse", x, dimensions=p),                            x,                                         when=_reverses_nothing),
    rule(op("reverse", op("reverse", x, dimensions=p), dimensions=q), op("reverse", x, dimensions=compute(_symmetric_difference, p, q))),
    rule(op("reverse", op("broadcast", x, dimensions=p), dimensions=q), _reverse_broadcast),
    rule(op("slice", x),                                            x,                                         when=_same_shape),
    rule(op("slice", op("slice", x, slice=p), slice=q),             op("slice", x, slice=compute(_compose_slices, p, q)), when=_composable),
    rule(op("slice", op("broadcast", x, dimensions=p), slice=q),    _slice_broadcast),
    rule(op("slice", op("pad", x, v, padding=p), slice=q),          _slice_pad),
    *any_of(["slice"],                                              _slice_concatenate),
    *any_of(["dynamic-slice"],                                      _take_all),
    *any_of(["dynamic-slice"],                                      _constant_indices),
    *any_of(["dynamic-update-slice"],                               _update_all),
    rule(op("pad", x, v, padding=p),                                x,                                         when=_pads_nothing),
    rule(op("pad", x, v, padding=p),                                _crop,                                     when=_only_crops),
    rule(op("pad", x, v, padding=p),                                _padding_alone),
    rule(op("pad", op("pad", x, v, padding=p), v, padding=q),       op("pad", x, v, padding=compute(_add_up, p, q)), when=_grows),
    *any_of(["concatenate"],                                        _join),
    *any_of(["concatenate"],                                        _join_slices),
]
# fmt: on
