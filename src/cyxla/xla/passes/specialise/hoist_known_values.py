"""Hoist computations on known values from loops.

Before, where w is known::

    body { s = (s32[], f32[8], f32[8,8]) parameter(0) ..  t = f32[8,8] transpose(w), dimensions={1,0} .. }
    ENTRY main { ..  l = while(s), condition=less, body=body }

After::

    body { s = (s32[], f32[8], f32[8,8], f32[8,8]) parameter(0)  t = f32[8,8] get-tuple-element(s), index=3 .. }
    ENTRY main { ..  t = f32[8,8] transpose(w), dimensions={1,0} ..  l = while(s), condition=less, body=body }

`while_simplifier` hoists only values that are worth carrying; here the caller chooses, since no call will compute them.
State that the loop no longer needs is left to `while_simplifier`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cyxla.types import Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.clone import copy_instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer
from cyxla.xla.passes.specialise.known_values import Known


def hoist_from_loops(
    module: HloModule, known: Known, select_values: Callable[[Computation, Known], Sequence[Instruction]]
) -> bool:
    """Hoist the values that `select_values` returns for the body of every loop, inner loops first."""
    changed = False
    for computation in module.post_order():
        for ins in list(computation.instructions):
            if ins.opcode != "while" or ins in known or not known.unchanged(ins):
                continue
            values = select_values(ins.called[0], known)
            if values:
                computation.replace_all_uses(ins, _extend(ins, values, known))
                changed = True
    return changed


def _extend(loop: Instruction, values: Sequence[Instruction], known: Known) -> Instruction:
    """Write a loop with these values in its state, and return the elements of the old state as a tuple."""
    computation, (body, condition) = loop.computation, loop.called
    start = [*loop.operands[0].operands, *_copies(loop, values, known)]
    state = Shape.tuple([s.shape.logical for s in start])
    before = computation.add("tuple", start, shape=state)
    new = copy_instruction(
        loop,
        computation,
        [before],
        called=[_copy(body, state, values, is_body=True), _copy(condition, state, (), is_body=False)],
        shape=state,
    )
    return _prefix(Writer(computation), new, len(loop.shape.elements))


def _copies(loop: Instruction, values: Sequence[Instruction], known: Known) -> list[Instruction]:
    """Write the values before the loop."""
    body, unchanged = loop.called[0], known.unchanged(loop)
    parameter, needed = body.parameters[0], _dependencies(values)
    copies: dict[Instruction, Instruction] = {}
    for ins in body.post_order():
        if ins not in needed or ins is parameter:
            continue
        if ins.opcode == "get-tuple-element" and ins.operands[0] is parameter:
            copies[ins] = unchanged[int(ins.attrs["index"])]
        else:
            copies[ins] = known.learn(copy_instruction(ins, loop.computation, [copies[o] for o in ins.operands]))
    return [copies[v] for v in values]


def _dependencies(values: Sequence[Instruction]) -> set[Instruction]:
    visited: set[Instruction] = set()
    stack = list(values)
    while stack:
        ins = stack.pop()
        if ins not in visited:
            visited.add(ins)
            stack.extend(ins.operands)
    return visited


def _copy(source: Computation, state: Shape, values: Sequence[Instruction], *, is_body: bool) -> Computation:
    """Copy a condition, or (if `is_body`) a body, to a computation on a longer state that ends with the values."""
    assert source.module is not None
    target = source.module.new_computation(source.name)
    target.execution_thread = source.execution_thread
    old, write = source.parameters[0], Writer(target)
    count = len(old.shape.elements)
    parameter = target.add("parameter", (), {"parameter_number": 0}, shape=state, name=old.name)
    hoisted = [_element(write, parameter, count + k) for k in range(len(values))]
    copies = dict(zip(values, hoisted, strict=True))
    copies[old] = _prefix(write, parameter, count)
    for ins in source.post_order():
        if ins not in copies:
            copies[ins] = copy_instruction(ins, target, [copies[o] for o in ins.operands])
            copies[ins].control_predecessors = tuple(copies[p] for p in ins.control_predecessors)
    target.root = copies[source.root]
    if is_body:
        results = [_element(write, target.root, n) for n in range(count)]
        target.root = target.add("tuple", [*results, *hoisted], shape=state)
    return target


def _prefix(write: Writer, source: Instruction, count: int) -> Instruction:
    """Return a tuple of the first elements of a tuple."""
    return _tuple(write, [_element(write, source, n) for n in range(count)])


def _tuple(write: Writer, parts: Sequence[Instruction]) -> Instruction:
    return write.computation.add("tuple", parts, shape=Shape.tuple([p.shape.logical for p in parts]))


def _element(write: Writer, source: Instruction, number: int) -> Instruction:
    return write.op("get-tuple-element", source, shape=source.shape.elements[number], index=number)
