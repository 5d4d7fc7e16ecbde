"""Merge elements of the state of a loop, or of the tuples of a conditional, that are always equal.

Before::

    body { s = (s64[], s64[], f32[8], f32[8]) parameter(0)  // n, m, x, y
      ..  keep = pred[8] compare(x, z), direction=GT
      a = (f32[8], s64[]) custom-call(keep, x), custom_call_target="cyxla_compact"
      b = (f32[8], s64[]) custom-call(keep, y), custom_call_target="cyxla_compact"
      ROOT t = tuple(number of a, number of b, rows of a, rows of b) }
    ENTRY main { ..  s = tuple(eight, eight, x, y)  w = while(s), condition=more, body=body .. }

After, each use of the second element, inside and outside of the loop, is one of the first.

Elements of a state are assumed to be equal if their initial values are; the assumption is dropped for those that the
body then does not return as equal, until it holds. `while_simplifier` removes the elements that nothing uses any more.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.observer import replace
from cyxla.xla.passes.engine.rewrite_helpers import Writer
from cyxla.xla.passes.simplify.value_numbers import Number, ValueNumbers
from cyxla.xla.passes.simplify.while_simplifier import is_plain

MAX_ROUNDS: Final = 8  # in which assumptions are dropped, before all of a loop are
_REASON: Final = "another element of the tuple is always equal"


def run(module: HloModule) -> bool:
    """Merge equal elements, in callers before their callees."""
    changed, calls = False, _number_of_calls(module)
    for computation in reversed(module.post_order()):
        for ins in computation.post_order():
            if ins.opcode not in ("while", "conditional") or any(calls[c] > 1 for c in ins.called):
                continue
            if ins.opcode == "while":
                changed |= _merge_state(ins)
            else:
                changed |= _merge_arguments(ins)
                changed |= _merge_results(ins)
    return changed


def _number_of_calls(module: HloModule) -> dict[Computation, int]:
    calls: dict[Computation, int] = {}
    for computation in module.post_order():
        for ins in computation.instructions:
            for called in ins.called:
                calls[called] = calls.get(called, 0) + 1
    return calls


def _merge_state(ins: Instruction) -> bool:
    """Merge the elements of a loop's state that are equal before and after every iteration."""
    state = ins.operands[0]
    if state.opcode != "tuple" or not is_plain(ins) or ins.control_predecessors:
        return False
    firsts = _firsts(state.operands)
    numbers = ValueNumbers()
    for _ in range(MAX_ROUNDS):
        if _all_differ(firsts):
            return False
        assumed: Number = tuple([numbers.number(("state", first)) for first in firsts])
        results = numbers.of_result(ins.called[0], [assumed])
        assert isinstance(results, tuple)  # the body is plain
        refined = _firsts(list(zip(firsts, results, strict=True)))
        if refined == firsts:
            sources = (*(c.parameters[0] for c in ins.called), ins)
            changes = [_read_first(source, firsts) for source in sources]
            return any(changes)
        firsts = refined
    return False


def _merge_arguments(ins: Instruction) -> bool:
    """Merge the elements of the arguments of a conditional's branches that are one value."""
    changed = False
    for branch, argument in zip(ins.called, ins.operands[1:], strict=True):
        if argument.opcode == "tuple":
            changed |= _read_first(branch.parameters[0], _firsts(argument.operands))
    return changed


def _merge_results(ins: Instruction) -> bool:
    """Merge the elements of a conditional's result that are equal in each branch."""
    if not ins.shape.is_tuple or ins.has_side_effect or ins.control_predecessors:
        return False
    numbers = ValueNumbers()
    results = []
    for branch, argument in zip(ins.called, ins.operands[1:], strict=True):
        known = argument.operands if argument.opcode == "tuple" else None
        elements = None if known is None else tuple([numbers.number(o) for o in known])
        result = numbers.of_result(branch, [numbers.number(argument) if elements is None else elements])
        if not isinstance(result, tuple):
            return False
        results.append(result)
    return _read_first(ins, _firsts(list(zip(*results, strict=True))))


def _firsts(values: Sequence[Hashable]) -> list[int]:
    """Return for each value the index of the first equal one."""
    found: dict[Hashable, int] = {}
    return [found.setdefault(value, k) for k, value in enumerate(values)]


def _all_differ(firsts: list[int]) -> bool:
    return all(first == k for k, first in enumerate(firsts))


def _read_first(source: Instruction, firsts: list[int]) -> bool:
    """Let the users of each element of a tuple read the first equal element."""
    if _all_differ(firsts):
        return False
    changed = False
    for user in list(source.users):
        if user.opcode != "get-tuple-element" or not (user.users or user.is_root):
            continue
        index = user.attrs["index"]
        shape = source.shape.elements[firsts[index]]
        if firsts[index] != index and shape == source.shape.elements[index]:
            first = Writer(source.computation).op("get-tuple-element", source, shape=shape, index=firsts[index])
            replace(user, first, _REASON)
            changed = True
    return changed
