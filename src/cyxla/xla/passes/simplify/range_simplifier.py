"""Simplify scalars inside loops by the ranges of loop counters.

Before::

    body { ..  i = get-tuple-element(s), index=0          // 0 <= i < 60
      low = compare(i, -60), direction=LT  high = compare(i, 60), direction=GE  bad = or(low, high)
      wrapped = select(compare(i, 0), direction=LT, add(i, 60), i)  row = dynamic-slice(a, wrapped, zero) .. }

After::

    body { ..  bad = constant(false)  row = dynamic-slice(a, i, zero) .. }

A loop whose condition is a predicate of its state, set to a comparison of a counter with its bound, gets that
comparison as its condition: the predicate is dead then. Reads of what an iteration has just written at the same place
are the value written.
"""

from __future__ import annotations

import numpy as np

from cyxla.types import ElementType
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.pattern import uniform_value
from cyxla.xla.passes.engine.rewrite_helpers import Writer
from cyxla.xla.passes.simplify.index_ranges import (
    IndexRanges,
    Range,
    constant,
    counters_of,
    decide,
    is_element,
    limits,
    linear,
)

_SUMS = frozenset({"add", "subtract", "multiply", "negate", "convert"})
_EXTREMES = {"maximum": 1, "minimum": -1}


def run(module: HloModule) -> bool:
    """Simplify the loops of a module in place; one without loops stays as it is."""
    loops = [i for c in module.post_order() for i in c.instructions if i.opcode == "while"]
    if not loops:
        return False
    known = IndexRanges(module.entry)
    changed = any([_unrotate(ins, known) for ins in loops])
    for loop in loops:
        for computation in _inside(loop):
            changed = _simplify(computation, known) or changed
        changed = _constants(loop, known) or changed
    return changed


def _inside(loop: Instruction) -> list[Computation]:
    """Return the computations of a loop, without those of loops in it."""
    found = list(loop.called)
    for computation in found:  # which grows
        found += [c for i in computation.instructions if i.opcode == "conditional" for c in i.called]
    return found


# ---------------------------------------------------------------------------------------------------------------- loops
def _unrotate(ins: Instruction, known: IndexRanges) -> bool:
    """Replace a condition that is a predicate of the state by the comparison that the predicate holds."""
    body, condition = ins.called
    root, parameter = condition.root, condition.parameters[0]
    if not ins.shape.is_tuple or not is_element(root, parameter) or body.root.opcode != "tuple":
        return False
    predicate = body.root.operands[int(root.attrs["index"])]
    counters = counters_of(ins, known.of)
    if predicate.opcode != "compare" or len(counters) != 1:
        return False
    counter, write = counters[0], Writer(condition)
    elements = ins.shape.elements
    left = write.op("get-tuple-element", parameter, shape=elements[counter.number], index=counter.number)
    if isinstance(counter.bound, int):
        right = _constant(condition, left, counter.bound)
    else:
        (bound,) = counter.bound
        right = write.op("get-tuple-element", parameter, shape=elements[bound], index=bound)
    condition.root = write.op("compare", left, right, shape=root.shape, direction=counter.direction)
    return True


def _constants(loop: Instruction, known: IndexRanges) -> bool:
    """Replace elements of the final state that are known constants."""
    changed = False
    for user in list(loop.users):
        if user.opcode == "get-tuple-element" and user.users and user.shape.is_array and user.shape.rank == 0:
            found = known.element(loop, int(user.attrs["index"]))
            changed = _replace_by_constant(user, found) or changed
    return changed


# -------------------------------------------------------------------------------------------------------------- scalars
def _simplify(computation: Computation, known: IndexRanges) -> bool:
    changed = False
    seen: dict[tuple[object, ...], Instruction] = {}  # scalars by their linear forms
    for ins in computation.post_order():
        if not ins.shape.is_array or not (ins.users or ins.is_root) or ins.control_predecessors:
            continue
        if _same_place(ins, known):
            changed = True
        elif ins.shape.size == 1 and limits(ins.shape.dtype) is not None and ins.opcode not in ("constant", "parameter"):
            new = None if _replace_by_constant(ins, _value(ins, known)) else _operand(ins, known) or _equal(ins, known, seen)
            if new is not None:
                _replace(ins, new)
            changed = changed or new is not None or not (ins.users or ins.is_root)
    return changed


def _value(ins: Instruction, known: IndexRanges) -> Range | None:
    """Return the range of a scalar, or of a comparison of scalars that differ by a constant."""
    if ins.opcode == "compare" and limits(ins.operands[0].shape.dtype) is not None:
        left, right = (linear(o, known) for o in ins.operands)
        gap = left.plus(right, -1)
        if not gap.terms:
            return decide(str(ins.attrs["direction"]), (gap.constant, gap.constant), (0, 0))
    return known.of(ins)


def _equal(ins: Instruction, known: IndexRanges, seen: dict[tuple[object, ...], Instruction]) -> Instruction | None:
    """Return a scalar before this one that is always equal to it; None without one."""
    if ins.opcode not in _SUMS or ins not in known.ranges:
        return None
    form = linear(ins, known)
    if form.constant == 0 and len(form.terms) == 1 and form.terms[0][1] == 1:
        base = form.terms[0][0]
        if base is not ins and base.shape.compatible(ins.shape):
            return base
    first = seen.setdefault((ins.shape.dtype, ins.shape.dims, form.constant, frozenset(form.terms)), ins)
    return None if first is ins else first


def _replace_by_constant(ins: Instruction, found: Range | None) -> bool:
    if found is None or found[0] != found[1] or ins.shape.is_dynamic:
        return False
    _replace(ins, _constant(ins.computation, ins, found[0]))
    return True


def _replace(old: Instruction, new: Instruction) -> None:
    old.computation.replace_all_uses(old, new)


def _constant(computation: Computation, like: Instruction, value: int) -> Instruction:
    return Writer(computation).constant(np.full(like.shape.dims, value), like.shape.dtype)


def _operand(ins: Instruction, known: IndexRanges) -> Instruction | None:
    """Return the operand that an instruction always equals; None without one."""
    if ins.opcode == "select":
        test = known.of(ins.operands[0])
        return None if test is None or test[0] != test[1] else ins.operands[2 - test[0]]
    if ins.opcode in _EXTREMES:
        (left, right), sign = [known.of(o) for o in ins.operands], _EXTREMES[ins.opcode]
        if left is None or right is None:
            return None
        if sign * left[0] >= sign * right[1] and sign * left[1] >= sign * right[0] and _above(left, right, sign):
            return ins.operands[0]
        return ins.operands[1] if _above(right, left, sign) else None
    if ins.opcode == "clamp":
        least, value, most = (known.of(o) for o in ins.operands)
        if least is not None and value is not None and most is not None:
            return ins.operands[1] if least[1] <= value[0] and value[1] <= most[0] else None
    if ins.opcode in ("and", "or") and str(ins.shape.dtype) == "pred":
        for k, operand in enumerate(ins.operands):
            found = known.of(operand)
            if found == ((1, 1) if ins.opcode == "and" else (0, 0)):
                return ins.operands[1 - k]
    return None


def _above(a: Range, b: Range, sign: int) -> bool:
    return a[0] >= b[1] if sign > 0 else a[1] <= b[0]


# ------------------------------------------------------------------------------------------------- writes, then reads
def _same_place(ins: Instruction, known: IndexRanges) -> bool:
    """Simplify reads and writes of slices: of those just written, of slices of slices, and of choices made before."""
    rule = _PLACES.get(ins.opcode)
    return rule is not None and rule(ins, known)


def _read(ins: Instruction, known: IndexRanges) -> bool:
    source = ins.operands[0]
    if source.opcode == "dynamic-update-slice":
        is_same = source.operands[1].shape.dims == ins.shape.dims
        if is_same and _same_starts(ins.operands[1:], source.operands[2:]):
            _replace(ins, source.operands[1])
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
    _replace(ins, new)
    return True


def _read_part(ins: Instruction, known: IndexRanges) -> bool:
    source, slices = ins.operands[0], ins.attrs["slice"]
    if source.opcode != "dynamic-update-slice" or source.operands[1].shape.dims != ins.shape.dims:
        return False
    starts = source.operands[2:]
    if len(starts) != len(slices) or any(d.stride != 1 for d in slices):
        return False
    if any(constant(s) != d.start for s, d in zip(starts, slices, strict=True)):
        return False
    _replace(ins, source.operands[1])
    return True


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
        shifted.append(start if not dim.start else write.op("add", start, _constant(ins.computation, start, dim.start)))
    return shifted


def _write(ins: Instruction, known: IndexRanges) -> bool:
    target, new, *starts = ins.operands
    if target.opcode == "dynamic-update-slice" and len(target.users) == 1:
        is_same = target.operands[1].shape.dims == new.shape.dims
        if is_same and _same_starts(tuple(starts), target.operands[2:]):
            ins.computation.replace_operand(ins, 0, target.operands[0])
            return True
    if new.opcode != "dynamic-update-slice" or new.operands[0].opcode != "slice":
        return False
    part = new.operands[0]
    slices = part.attrs["slice"]
    source = part.operands[0]
    is_back = source is target or _differs_inside(source, target, part, known)
    if not is_back or len(starts) != len(slices) or any(d.stride != 1 for d in slices) or any(constant(s) != d.start for s, d in zip(starts, slices, strict=True)):
        return False
    inner = _shifted(ins, new.operands[2:], part, new.operands[1].shape.dims, known)
    if inner is None:
        return False
    _replace(ins, Writer(ins.computation).op("dynamic-update-slice", source, new.operands[1], *inner))
    return True


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
        _replace(ins, inside)
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
    _replace(ins, write.op("dynamic-update-slice", outside, inside.operands[0], *starts, shape=ins.shape.logical))
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


def _same_starts(a: tuple[Instruction, ...], b: tuple[Instruction, ...]) -> bool:
    if len(a) != len(b):
        return False
    return all(x is y or (constant(x) is not None and constant(x) == constant(y)) for x, y in zip(a, b, strict=True))


_PLACES = {"slice": _read_part, "dynamic-slice": _read, "dynamic-update-slice": _write, "select": _choose}
