"""Split a product with known weights, of which only slices are used, into several products.

Before, as in attention; w is known::

    d = f32[128,48] dot(f32[128,16] x, f32[16,48] w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    t = f32[3,2,128,8] transpose(f32[128,3,2,8] reshape(d)), dimensions={1,2,0,3}
    q = f32[2,128,8] reshape(f32[1,2,128,8] slice(t), slice={[0:1], [0:2], [0:128], [0:8]})
    k = ..

After::

    v = f32[16,16] slice(w), slice={[0:16], [0:16]}
    d = f32[128,16] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    q = f32[2,128,8] transpose(f32[128,2,8] reshape(d)), dimensions={1,0,2}
    k = ..

Every slice is moved up through transposes, reshapes and element-wise operations to the product. That pays because
slices of the weights are known, and users of the products read them in place, where slices of a wider product would
be copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from cyxla.xla.hlo import OPCODES, HloModule, Instruction
from cyxla.xla.hlo.attributes import SliceDim
from cyxla.xla.passes.engine.clone import copy_instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer
from cyxla.xla.passes.expand.dot import DotDims
from cyxla.xla.passes.specialise.known_values import Known, KnownWriter

MAX_STEPS: Final = 64  # between a product and its slices
MIN_COLUMNS: Final = 64  # least number of columns of a separate product
_MOVED_THROUGH: Final = frozenset({
    "transpose", "reshape", *(r.name for r in OPCODES.values() if r.elementwise and r.name != "stochastic-convert"),
})  # fmt: skip
_Ranges = tuple[SliceDim, ...]


def run(module: HloModule, known: Known) -> bool:
    """Split products in every computation."""
    changed = False
    for computation in module.post_order():
        for ins in list(computation.instructions):
            if ins.opcode == "dot" and ins in computation.instructions and ins not in known:
                changed |= _split(ins, known)
    return changed


def _split(dot: Instruction, known: Known) -> bool:
    path = _path(dot) if known.depends(dot.operands[1]) else None
    if path is None:
        return False
    dims = DotDims.of(dot)
    fixed = dot.shape.rank - len(dims.rhs_free)
    slices = {s: _levels(s, path) for s in path[-1].users}
    parts = [levels[0] for levels in slices.values() if levels is not None]
    if len(parts) != len(slices) or not all(_is_profitable(part, dot, fixed) for part in parts):
        return False
    if sum(prod(_sizes(part)) for part in parts) > dot.shape.size:
        return False  # some elements would be computed twice
    for part, levels in slices.items():
        assert levels is not None
        dot.computation.replace_all_uses(part, _rebuild(path, levels, dims, known))
    return True


def _path(dot: Instruction) -> list[Instruction] | None:
    """Return the product and its chain of users, up to an instruction with only slices as users, or None.

    The chain must contain a transpose.
    """
    path = [dot]
    while len(path) < MAX_STEPS:
        at = path[-1]
        if at.is_root or at.control_predecessors or not at.users:
            return None
        if all(u.opcode == "slice" for u in at.users):
            return path if any(i.opcode == "transpose" for i in path) else None
        user = next(iter(at.users))
        if len(at.users) > 1 or user.opcode not in _MOVED_THROUGH or user.operands.count(at) > 1:
            return None
        path.append(user)
    return None


def _is_profitable(part: _Ranges, dot: Instruction, fixed: int) -> bool:
    """Return True if a part of a product has all of its rows and enough of its columns."""
    has_all_rows = all(r == SliceDim(0, n) for r, n in zip(part[:fixed], dot.shape.dims[:fixed], strict=True))
    return has_all_rows and prod(_sizes(part)[fixed:]) >= MIN_COLUMNS


def _sizes(ranges: _Ranges) -> list[int]:
    return [r.limit - r.start for r in ranges]


# --- upwards: the part of each instruction that a slice reads ---


def _levels(slice_: Instruction, path: Sequence[Instruction]) -> list[_Ranges] | None:
    """Return the ranges that a slice of the last instruction reads of each one on the path, or None."""
    levels: list[_Ranges] = [slice_.attrs["slice"]]
    if any(r.stride != 1 for r in levels[0]):
        return None
    for below in reversed(path[1:]):
        source, ranges = next(o for o in below.operands if o in path), levels[-1]
        if below.opcode == "transpose":
            order = below.attrs["dimensions"]
            ranges = tuple(ranges[order.index(d)] for d in range(len(order)))
        elif below.opcode == "reshape":
            before = _ranges_before_reshape(source.shape.dims, below.shape.dims, ranges)
            if before is None:
                return None
            ranges = before
        levels.append(ranges)
    return levels[::-1]


def _ranges_before_reshape(before: Sequence[int], after: Sequence[int], ranges: _Ranges) -> _Ranges | None:
    """Return the ranges of an array that become `ranges` in its reshape, or None."""
    ranges_before: list[SliceDim] = []
    for old, new in _segments(before, after):
        flat = _flat_range([after[d] for d in new], [ranges[d] for d in new])
        part = _unflatten([before[d] for d in old], *flat) if flat is not None else None
        if part is None:
            return None
        ranges_before += part
    return tuple(ranges_before)


def _segments(before: Sequence[int], after: Sequence[int]) -> list[tuple[range, range]]:
    """Return groups of adjacent dimensions on both sides that hold the same elements."""
    segments, i, j = [], 0, 0
    while i < len(before) or j < len(after):
        first, second = i, j
        left = right = 1
        while (i == first and j == second) or left != right:
            if left <= right and i < len(before):
                left, i = left * before[i], i + 1
            else:
                right, j = right * after[j], j + 1
        segments.append((range(first, i), range(second, j)))
    return segments


def _flat_range(dims: Sequence[int], ranges: Sequence[SliceDim]) -> tuple[int, int] | None:
    """Return start and limit of ranges in row-major order, or None if they are not contiguous."""
    partial_dims = [d for d, r in enumerate(ranges) if r != SliceDim(0, dims[d])]
    last = partial_dims[-1] if partial_dims else 0
    if any(r.limit - r.start != 1 for r in ranges[:last]):
        return None
    start = sum(r.start * prod(dims[d + 1 :]) for d, r in enumerate(ranges))
    return start, start + prod(_sizes(tuple(ranges)))


def _unflatten(dims: Sequence[int], start: int, limit: int) -> list[SliceDim] | None:
    """Return the slice that is a contiguous range in row-major order, or None."""
    for d, size in enumerate(dims):
        inner = prod(dims[d + 1 :])
        if start % inner or limit % inner:
            continue
        first, end = start // inner, limit // inner
        outer = first // size
        if (end - 1) // size != outer:
            return None
        single = [SliceDim(k, k + 1) for k in _unravel(outer, dims[:d])]
        rest = [SliceDim(0, n) for n in dims[d + 1 :]]
        return [*single, SliceDim(first - outer * size, end - outer * size), *rest]
    return []


def _unravel(number: int, dims: Sequence[int]) -> list[int]:
    index = []
    for n in reversed(dims):
        number, coordinate = divmod(number, n)
        index.append(coordinate)
    return index[::-1]


# --- downwards: the same chain for a part of the product ---


def _rebuild(path: Sequence[Instruction], levels: Sequence[_Ranges], dims: DotDims, known: Known) -> Instruction:
    dot = path[0]
    other, weights = dot.operands
    ranges = [SliceDim(0, n) for n in weights.shape.dims]
    for d, r in zip(dims.rhs_free, levels[0][dot.shape.rank - len(dims.rhs_free) :], strict=True):
        ranges[d] = r
    part = _slice(KnownWriter(dot.computation, known), weights, tuple(ranges))
    at = copy_instruction(dot, dot.computation, [other, part], shape=dot.shape.with_dims(_sizes(levels[0])))
    write = Writer(dot.computation)
    for above, ins, level in zip(path[:-1], path[1:], levels[1:], strict=True):
        shape = ins.shape.with_dims(_sizes(level))
        others = ins.row.elementwise
        operands = [at if o is above else (_slice(write, o, level) if others else o) for o in ins.operands]
        at = copy_instruction(ins, dot.computation, operands, shape=shape)
    return at


def _slice(write: Writer, ins: Instruction, ranges: _Ranges) -> Instruction:
    """Return a slice, written as a smaller broadcast if possible."""
    sizes = _sizes(ranges)
    if not ins.shape.rank or tuple(sizes) == ins.shape.dims:
        return ins
    shape = ins.shape.with_dims(sizes)
    if ins.opcode != "broadcast":
        return write.op("slice", ins, shape=shape, slice=ranges)
    inner = _slice(write, ins.operands[0], tuple(ranges[d] for d in ins.attrs["dimensions"]))
    return write.op("broadcast", inner, shape=shape, dimensions=ins.attrs["dimensions"])
