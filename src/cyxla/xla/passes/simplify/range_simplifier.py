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

from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer
from cyxla.xla.passes.simplify import loop_updates
from cyxla.xla.passes.simplify.index_ranges import (
    IndexRanges,
    Range,
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
    changed = False
    for loop in loops:
        changed = _unrotate(loop, known) or changed
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
        if loop_updates.simplify(ins, known, joins=False):
            changed = True
        elif (
            ins.shape.size == 1 and limits(ins.shape.dtype) is not None and ins.opcode not in ("constant", "parameter")
        ):
            new = (
                None
                if _replace_by_constant(ins, _value(ins, known))
                else _operand(ins, known) or _equal(ins, known, seen)
            )
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
