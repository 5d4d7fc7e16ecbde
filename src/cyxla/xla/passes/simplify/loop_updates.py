"""Turn what a loop writes into updates of the arrays of its state, which need no copy.

Before::

    x = get-tuple-element(s), index=1
    row = f64[148,150] concatenate(slice(x), y, slice(x)), dimensions={1}
    ROOT t = tuple(.., f64[150,150] concatenate(slice(x), row, slice(x)))

After::

    ROOT t = tuple(.., f64[150,150] dynamic-update-slice(x, f64[148,148] y, one, one))

A read of what was just written at the same place is the value written; one of a part of an array that is written into
another is a read of the other. A choice by a mask of a box is an update of the box.
"""

from __future__ import annotations

import numpy as np

from cyxla.types import ElementType
from cyxla.xla.hlo import OPCODES, Computation, HloModule, Instruction
from cyxla.xla.hlo.attributes import SliceDim
from cyxla.xla.passes.engine.pattern import uniform_value
from cyxla.xla.passes.engine.rewrite_helpers import Writer, any_behind
from cyxla.xla.passes.simplify.index_ranges import IndexRanges, constant

_MAX_ROUNDS = 8
_MIN_ELEMENTS = 16  # elements of an update that is not computed twice


def run(module: HloModule) -> bool:
    """Rewrite the writes in all loops of a module in place; one without loops stays as it is."""
    loops = [i for c in module.post_order() for i in c.instructions if i.opcode == "while"]
    if not loops:
        return False
    known, changed = IndexRanges(module.entry), False
    for loop in loops:
        computations = list(loop.called)
        for computation in computations:  # which grows
            computations += [c for i in computation.instructions if i.opcode == "conditional" for c in i.called]
            for _ in range(_MAX_ROUNDS):
                if not _run_once(computation, known):
                    break
                changed = True
            changed = _read_from_arrays(computation) or changed
    return changed


def _run_once(computation: Computation, known: IndexRanges) -> bool:
    changed = False
    for ins in computation.post_order():
        if ins.shape.is_array and (ins.users or ins.is_root) and not ins.control_predecessors:
            changed = simplify(ins, known, joins=True) or changed
    return changed


def _read_from_arrays(computation: Computation) -> bool:
    """Let readers of a computed update read it from the array it is written to, so that it is computed once."""
    changed = False
    for ins in computation.post_order():
        if ins.opcode != "dynamic-update-slice" or not (ins.users or ins.is_root):
            continue
        new, write = ins.operands[1], Writer(computation)
        starts = [constant(s) for s in ins.operands[2:]]
        if new.shape.size < _MIN_ELEMENTS or not OPCODES[new.opcode].elementwise or not _in_bounds(starts, new, ins):
            continue
        for user in [u for u in new.users if u is not ins and not _depends(ins, u)]:
            slices = tuple(SliceDim(int(a or 0), int(a or 0) + n) for a, n in zip(starts, new.shape.dims, strict=True))
            part = write.op("slice", ins, shape=new.shape.logical, slice=slices)
            for k, operand in enumerate(user.operands):
                if operand is new:
                    computation.replace_operand(user, k, part)
            changed = True
    return changed


def simplify(ins: Instruction, known: IndexRanges, *, joins: bool) -> bool:
    """Simplify one instruction of a loop, if there is a rule for it.

    Parameters
    ----------
    ins : Instruction
        Instruction.
    known : IndexRanges
        Ranges of scalars.
    joins : bool
        Whether joined pieces of an array become updates of it; the simplification of constant indices undoes that.
    """
    rule = _RULES.get(ins.opcode)
    return rule is not None and (joins or ins.opcode != "concatenate") and rule(ins, known)


def _read(ins: Instruction, known: IndexRanges) -> bool:
    source = ins.operands[0]
    if source.opcode == "dynamic-update-slice":
        is_same = source.operands[1].shape.dims == ins.shape.dims
        if is_same and _same_starts(ins.operands[1:], source.operands[2:]):
            ins.computation.replace_all_uses(ins, source.operands[1])
            return True
    if source.opcode != "slice" or any(d.stride != 1 for d in source.attrs["slice"]):
        return False
    starts = _shifted(ins, ins.operands[1:], source, ins.shape.dims, known)
    if starts is None:
        return False
    new = Writer(ins.computation).op(
        "dynamic-slice", source.operands[0], *starts, shape=ins.shape.logical,
        dynamic_slice_sizes=ins.attrs["dynamic_slice_sizes"],
    )  # fmt: skip
    ins.computation.replace_all_uses(ins, new)
    return True


def _read_part(ins: Instruction, known: IndexRanges) -> bool:
    source, slices = ins.operands[0], ins.attrs["slice"]
    if source.opcode == "concatenate":
        return _read_from_update(ins, source)
    if source.opcode != "dynamic-update-slice" or source.operands[1].shape.dims != ins.shape.dims:
        return False
    starts = source.operands[2:]
    if len(starts) != len(slices) or any(d.stride != 1 for d in slices):
        return False
    if any(constant(s) != d.start for s, d in zip(starts, slices, strict=True)):
        return False
    ins.computation.replace_all_uses(ins, source.operands[1])
    return True


def _read_from_update(ins: Instruction, part: Instruction) -> bool:
    """Read a part of an array that is written into another from there, so that it need not be computed again."""
    for update in part.users:
        if update.opcode != "dynamic-update-slice" or update.operands[1] is not part or update.operands[0] is part:
            continue
        starts = [constant(s) for s in update.operands[2:]]
        if len(starts) != ins.shape.rank or not _in_bounds(starts, part, update) or _depends(update, ins):
            continue
        slices = tuple(
            s._replace(start=s.start + at, limit=s.limit + at) for s, at in zip(ins.attrs["slice"], starts, strict=True)
        )
        ins.computation.replace_all_uses(
            ins, Writer(ins.computation).op("slice", update, shape=ins.shape.logical, slice=slices)
        )
        return True
    return False


def _in_bounds(starts: list[int | None], part: Instruction, update: Instruction) -> bool:
    if len(starts) != part.shape.rank:
        return False
    sizes = zip(starts, part.shape.dims, update.shape.dims, strict=True)
    return all(at is not None and 0 <= at <= n - size for at, size, n in sizes)


def _depends(ins: Instruction, on: Instruction) -> bool:
    """Return whether an instruction depends on another."""
    stack, seen = [ins], {ins}
    while stack:
        for operand in stack.pop().operands:
            if operand is on:
                return True
            if operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return False


def _constant(like: Instruction, value: int) -> Instruction:
    return Writer(like.computation).constant(np.full(like.shape.dims, value), like.shape.dtype)


def _shifted(
    ins: Instruction, starts: tuple[Instruction, ...], part: Instruction, sizes: tuple[int, ...], known: IndexRanges
) -> list[Instruction] | None:
    """Return the starts in an array of a slice that starts inside a static slice of it; None if it might be clamped."""
    if len(starts) != len(sizes):
        return None
    write = Writer(ins.computation)
    shifted = []
    for start, size, dim, n in zip(starts, sizes, part.attrs["slice"], part.shape.dims, strict=True):
        found = known.of(start)
        if found is None or found[0] < 0 or found[1] > n - size:
            return None
        shifted.append(start if not dim.start else write.op("add", start, _constant(start, dim.start)))
    return shifted


def _write(ins: Instruction, known: IndexRanges) -> bool:
    target, new, *starts = ins.operands
    if target.opcode == "dynamic-update-slice" and len(target.users) == 1:
        is_same = target.operands[1].shape.dims == new.shape.dims
        if is_same and _same_starts(tuple(starts), target.operands[2:]):
            ins.computation.replace_operand(ins, 0, target.operands[0])
            return True
    if new.opcode == "concatenate":
        return _write_joined(ins, target, new, starts)
    if new.opcode != "dynamic-update-slice" or new.operands[0].opcode != "slice":
        return False
    part = new.operands[0]
    slices = part.attrs["slice"]
    source = part.operands[0]
    is_back = source is target or _differs_inside(source, target, part, known)
    if (
        not is_back
        or len(starts) != len(slices)
        or any(d.stride != 1 for d in slices)
        or any(constant(s) != d.start for s, d in zip(starts, slices, strict=True))
    ):
        return False
    inner = _shifted(ins, new.operands[2:], part, new.operands[1].shape.dims, known)
    if inner is None:
        return False
    ins.computation.replace_all_uses(
        ins, Writer(ins.computation).op("dynamic-update-slice", source, new.operands[1], *inner)
    )
    return True


def _write_joined(ins: Instruction, target: Instruction, new: Instruction, starts: list[Instruction]) -> bool:
    """Write one of the joined pieces alone, if the array has the others already."""
    (axis,) = new.attrs["dimensions"]
    at = [constant(s) for s in starts]
    if len(at) != ins.shape.rank or not _in_bounds(at, new, ins):
        return False
    offset, own = 0, []
    for piece in new.operands:
        begin = [int(a or 0) + (offset if d == axis else 0) for d, a in enumerate(at)]
        if not _is_box(piece, target, begin):
            own.append((piece, begin))
        offset += piece.shape.dims[axis]
    if len(own) != 1:
        return False
    ((piece, begin),) = own
    write = Writer(ins.computation)
    new_starts = [_constant(s, b) for s, b in zip(starts, begin, strict=True)]
    ins.computation.replace_all_uses(ins, write.op("dynamic-update-slice", target, piece, *new_starts))
    return True


def _is_box(ins: Instruction, target: Instruction, begin: list[int]) -> bool:
    """Return whether an instruction is the box of an array that begins at an index."""
    if ins.opcode != "slice" or ins.operands[0] is not target:
        return False
    return all(s.stride == 1 and s.start == b for s, b in zip(ins.attrs["slice"], begin, strict=True))


def _differs_inside(source: Instruction, target: Instruction, part: Instruction, known: IndexRanges) -> bool:
    """Return whether an array differs from another inside a static slice alone."""
    if source.opcode != "dynamic-update-slice" or source.operands[0] is not target:
        return False
    update, *starts = source.operands[1:]
    if len(starts) != len(part.attrs["slice"]):
        return False
    for start, size, dim in zip(starts, update.shape.dims, part.attrs["slice"], strict=True):
        found = known.of(start)
        if found is None or found[0] < dim.start or found[1] + size > dim.limit:
            return False
    return True


def _choose(ins: Instruction, known: IndexRanges) -> bool:
    predicate, inside, outside = ins.operands
    if inside is outside:
        ins.computation.replace_all_uses(ins, inside)
        return True
    for k in (1, 2):
        inner = ins.operands[k]
        if inner.opcode == "select" and inner.operands[0] is predicate:
            ins.computation.replace_operand(ins, k, inner.operands[k])
            return True
    if not _is_frame(predicate, inside) or outside.opcode == "broadcast" or inside.operands[0].shape.size == 0:
        return False
    write = Writer(ins.computation)
    starts = [write.constant(p.low, ElementType.S64) for p in inside.attrs["padding"]]
    ins.computation.replace_all_uses(
        ins, write.op("dynamic-update-slice", outside, inside.operands[0], *starts, shape=ins.shape.logical)
    )
    return True


def _is_frame(predicate: Instruction, padded: Instruction) -> bool:
    """Return whether a mask holds just where a padded array has elements of its own, which are one box."""
    if predicate.opcode != "pad" or padded.opcode != "pad" or predicate.attrs["padding"] != padded.attrs["padding"]:
        return False
    if predicate.operands[0].shape.dims != padded.operands[0].shape.dims:
        return False
    if any(p.interior or p.low < 0 or p.high < 0 for p in padded.attrs["padding"]):
        return False
    mask, filler = uniform_value(predicate.operands[0]), uniform_value(predicate.operands[1])
    return mask is not None and filler is not None and bool(mask) and not bool(filler)


def _join(ins: Instruction, known: IndexRanges) -> bool:
    """Rewrite the pieces of an array around a new part as an update of the array."""
    (axis,) = ins.attrs["dimensions"]
    for k, part in enumerate(ins.operands):
        ends = [*ins.operands[:k], *ins.operands[k + 1 :]]
        target = ends[0].operands[0] if ends and ends[0].opcode == "slice" else None
        if target is None or target.shape.dims != ins.shape.dims or target is part:
            continue
        starts = [sum(o.shape.dims[axis] for o in ins.operands[:n]) for n in range(len(ins.operands))]
        if all(_is_piece(o, target, axis, starts[n]) for n, o in enumerate(ins.operands) if n != k):
            if _reads_around(part, target, [starts[k] if d == axis else 0 for d in range(ins.shape.rank)]):
                continue
            write = Writer(ins.computation)
            at = [write.constant(starts[k] if d == axis else 0, ElementType.S64) for d in range(ins.shape.rank)]
            ins.computation.replace_all_uses(
                ins, write.op("dynamic-update-slice", target, part, *at, shape=ins.shape.logical)
            )
            return True
    return False


def _reads_around(part: Instruction, target: Instruction, begin: list[int]) -> bool:
    """Return whether a loop that computes a part of an array reads other elements of the array.

    As an update, the part is stored and then copied into the array: all in all more than writing the array anew.
    """
    if part.opcode == "concatenate":
        (axis,) = part.attrs["dimensions"]
        offset = 0
        for piece in part.operands:
            if _reads_around(piece, target, [b + (offset if d == axis else 0) for d, b in enumerate(begin)]):
                return True
            offset += piece.shape.dims[axis]
        return False
    return any_behind(
        part,
        lambda ins: ins.opcode == "slice" and ins.operands[0] is target and not _is_box(ins, target, begin),
        lambda ins: ins.operands if OPCODES[ins.opcode].elementwise else (),
    )


def _is_piece(ins: Instruction, target: Instruction, axis: int, start: int) -> bool:
    """Return whether an instruction is the slice of an array along one dimension that begins at an index."""
    if ins.opcode != "slice" or ins.operands[0] is not target:
        return False
    return all(
        s.stride == 1 and s.start == (start if d == axis else 0) and (d == axis or s.limit == target.shape.dims[d])
        for d, s in enumerate(ins.attrs["slice"])
    )


def _same_starts(a: tuple[Instruction, ...], b: tuple[Instruction, ...]) -> bool:
    if len(a) != len(b):
        return False
    return all(x is y or (constant(x) is not None and constant(x) == constant(y)) for x, y in zip(a, b, strict=True))


_RULES = {
    "concatenate": _join,
    "slice": _read_part,
    "dynamic-slice": _read,
    "dynamic-update-slice": _write,
    "select": _choose,
}
