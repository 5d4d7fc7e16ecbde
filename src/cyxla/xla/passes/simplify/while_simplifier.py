"""Simplify loops: carry less state, hoist invariants, and record trip counts.

Before::

    body { s = (s32[], s32[], f32[4], f32[4]) parameter(0)  // i, n, x, sum
      ..  e = f32[4] exponential(x)  a = f32[4] add(sum, e)  j = s32[] add(i, one)
      ROOT t = tuple(j, n, x, a) }
    ENTRY main { ..  s = tuple(zero, ten, x, zeros)  w = while(s), condition=less, body=body
      ROOT r = f32[4] get-tuple-element(w), index=3 }

After::

    body { s = (s32[], f32[4], f32[4]) parameter(0)  // i, sum, e
      ..  a = f32[4] add(sum, e)  j = s32[] add(i, one)
      ROOT t = tuple(j, a, e) }
    ENTRY main { ..  e = f32[4] exponential(x)  s = tuple(zero, zeros, e)
      w = while(s), condition=less, body=body, backend_config={"known_trip_count":{"n":"10"}}
      ROOT r = f32[4] get-tuple-element(w), index=1 }

A loop without iterations is its initial state, one with a single iteration is its body. State that the body returns
unchanged is read outside of the loop; scalar constants in it are sunk into the loop. Dead state is removed. Loop
invariants are computed once, before the loop, unless they are cheap or large.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from cyxla.records import dataclass
from cyxla.types import Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.clone import copy_body, copy_instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_in
from cyxla.xla.passes.simplify.trip_count import known_trip_count

#: Opcodes worth hoisting, besides functions that are not exact.
_COSTLY: Final = frozenset({
    "dot", "convolution", "reduce", "reduce-window", "transpose", "sort", "gather", "scatter", "cholesky",
    "triangular-solve", "fft", "concatenate", "iota", "divide", "remainder",
})  # fmt: skip
_CHEAP: Final = frozenset({"constant", "broadcast", "get-tuple-element", "reshape"})


def run(module: HloModule) -> bool:
    """Simplify every loop, inner loops first."""
    changed = False
    for computation in module.post_order():
        changed |= run_computation(computation)
    return changed


def run_computation(computation: Computation) -> bool:
    """Simplify the loops of one computation, after those inside them."""
    return rewrite_in(
        computation, {"while": lambda ins: None if any(c.has_side_effect for c in ins.called) else _simplify(ins)}
    )


def effects_of(module: HloModule) -> dict[Computation, bool]:
    """Return True for each computation that has a side effect, itself or in a callee."""
    effects: dict[Computation, bool] = {}
    for computation in module.post_order():
        has_effect = any(
            i.row.side_effect or i.attrs.get("custom_call_has_side_effect") for i in computation.instructions
        )
        effects[computation] = has_effect or any(effects[c] for i in computation.instructions for c in i.called)
    return effects


def _simplify(ins: Instruction) -> Instruction | None:
    if not (ins.users or ins.is_root) or ins.control_predecessors:
        return None
    trips = known_trip_count(ins)
    if trips == 0:
        return ins.operands[0]
    if trips == 1:
        return copy_body(ins.called[0], ins.computation, ins.operands)
    if not is_plain(ins):
        return None
    plan = _plan(ins)
    adds_trip_count = trips is not None and "backend_config" not in ins.extras
    if plan is None and not adds_trip_count:
        return None
    if plan is None:
        assert trips is not None
        return _annotate(ins, trips)
    return _rebuild(ins, plan)


def _annotate(ins: Instruction, trips: int) -> Instruction:
    new = copy_instruction(ins, ins.computation, ins.operands)
    new.extras["backend_config"] = f'{{"known_trip_count":{{"n":"{trips}"}}}}'
    return new


def is_plain(ins: Instruction) -> bool:
    """Return True if the state is a tuple that is only used by its elements, and the body returns a tuple."""
    if not ins.shape.is_tuple or ins.called[0].root.opcode != "tuple":
        return False
    parameters = [c.parameters[0] for c in ins.called]
    has_control_edges = any(i.control_predecessors for c in ins.called for i in c.instructions)
    return not has_control_edges and all(u.opcode == "get-tuple-element" for p in parameters for u in p.users)


@dataclass
class _Plan:
    """Changes to the state of a loop."""

    kept: list[int]  # elements that stay
    sunk: dict[int, Instruction] = field(default_factory=dict)  # constants that are sunk into the loop
    outside: dict[int, Instruction] = field(default_factory=dict)  # unchanged elements, read from the initial state
    hoisted: list[Instruction] = field(default_factory=list)  # invariant instructions of the body


def _plan(ins: Instruction) -> _Plan | None:
    body = ins.called[0]
    count = len(ins.shape.elements)
    parameter, results = body.parameters[0], body.root.operands
    unchanged = {n for n, r in enumerate(results) if _is_element(r, parameter, n)}
    initial = ins.operands[0].operands if ins.operands[0].opcode == "tuple" else None
    sunk = {n: initial[n] for n in unchanged if initial is not None and _sinks(initial[n])}
    hoisted = _invariant(body, parameter, unchanged, sunk)
    uses_whole = not all(u.opcode == "get-tuple-element" for u in ins.users) or ins.is_root
    read = {int(u.attrs["index"]) for u in ins.users if u.opcode == "get-tuple-element"}
    needed = set(range(count)) - unchanged if uses_whole else read - unchanged
    live = _live(needed, ins, unchanged, sunk, hoisted)
    outside = {n: initial[n] for n in unchanged & read if initial is not None}
    kept = sorted(live if initial is not None else live | (unchanged & (read if not uses_whole else set(range(count)))))
    if len(kept) == count and not hoisted:
        return (
            None
            if not (outside and not uses_whole) or not _reads_unchanged(ins, unchanged)
            else _Plan(kept, sunk, outside)
        )
    return _Plan(kept, sunk, outside, hoisted)


def _reads_unchanged(ins: Instruction, unchanged: set[int]) -> bool:
    return any(u.opcode == "get-tuple-element" and int(u.attrs["index"]) in unchanged and u.users for u in ins.users)


def _is_element(ins: Instruction, parameter: Instruction, number: int) -> bool:
    return ins.opcode == "get-tuple-element" and ins.operands[0] is parameter and ins.attrs["index"] == number


def _sinks(ins: Instruction) -> bool:
    return ins.opcode == "constant" and ins.shape.is_array and ins.shape.rank == 0


def _invariant(
    body: Computation, parameter: Instruction, unchanged: set[int], sunk: Mapping[int, Instruction]
) -> list[Instruction]:
    """Return the invariant instructions of the body that are worth hoisting."""
    constant: set[Instruction] = set()
    invariants: list[Instruction] = []
    for ins in body.post_order():
        if ins.opcode == "get-tuple-element" and ins.operands[0] is parameter:
            if int(ins.attrs["index"]) in unchanged:
                constant.add(ins)
        elif ins.opcode == "parameter" or not ins.shape.is_array or ins.has_side_effect or ins.shape.is_dynamic:
            continue
        elif all(o in constant for o in ins.operands) and ins.row.name not in ("rng", "opt-barrier"):
            constant.add(ins)
            if _worth_hoisting(ins):
                invariants.append(ins)
    # Only the ends of a chain are carried.
    return [i for i in invariants if not all(u in invariants for u in i.users) or i.is_root]


def _worth_hoisting(ins: Instruction) -> bool:
    if ins.shape.size <= 1 or ins.opcode in _CHEAP or not ins.operands:
        return False
    operand_bytes = sum(o.shape.nbytes for o in ins.operands)
    return (ins.opcode in _COSTLY or bool(ins.row.ulp)) and ins.shape.nbytes <= operand_bytes


def _live(
    needed: set[int], ins: Instruction, unchanged: set[int], sunk: Mapping[int, Instruction], hoisted: list[Instruction]
) -> set[int]:
    """Return the elements that the loop still has to carry without the sunk and hoisted ones."""
    body, condition = ins.called
    stop = set(hoisted)
    live: set[int] = set()
    todo = needed | _elements_used([condition.root], condition.parameters[0], set())
    while todo:
        number = todo.pop()
        if number in live or number in sunk:
            continue
        live.add(number)
        todo |= _elements_used([body.root.operands[number]], body.parameters[0], stop) - live
    return live


def _elements_used(roots: list[Instruction], parameter: Instruction, stop: set[Instruction]) -> set[int]:
    """Return the elements of the state that the instructions depend on."""
    elements: set[int] = set()
    visited: set[Instruction] = set()
    stack = list(roots)
    while stack:
        ins = stack.pop()
        if ins in visited or ins in stop:
            continue
        visited.add(ins)
        if ins.opcode == "get-tuple-element" and ins.operands[0] is parameter:
            elements.add(int(ins.attrs["index"]))
        else:
            stack.extend(ins.operands)
    return elements


# --- writing the new loop ---


def _rebuild(ins: Instruction, plan: _Plan) -> Instruction | None:
    """Write the loop of a plan, and return a tuple with the elements of the old state."""
    computation, (body, condition) = ins.computation, ins.called
    write = Writer(computation)
    start = [_element(write, ins.operands[0], n) for n in plan.kept]
    start += _hoist(ins, plan)
    state = computation.add("tuple", start, shape=Shape.tuple([s.shape.logical for s in start]))
    new_body = _copy(body, state.shape, plan, [body.root.operands[n] for n in plan.kept])
    new_condition = _copy(condition, state.shape, plan, None)
    loop = computation.add(
        "while", (state,), shape=state.shape, called=(new_body, new_condition), metadata=ins.metadata
    )
    index_of = {n: k for k, n in enumerate(plan.kept)}
    parts: list[Instruction] = []
    for n, shape in enumerate(ins.shape.elements):
        if n in index_of and n not in plan.outside:
            parts.append(write.op("get-tuple-element", loop, shape=shape, index=index_of[n]))
        else:
            parts.append(_element(write, ins.operands[0], n))
    return computation.add("tuple", parts, shape=Shape.tuple([p.shape for p in parts]))


def _element(write: Writer, source: Instruction, number: int) -> Instruction:
    if source.opcode == "tuple":
        return source.operands[number]
    return write.op("get-tuple-element", source, shape=source.shape.elements[number], index=number)


def _hoist(ins: Instruction, plan: _Plan) -> list[Instruction]:
    """Copy the hoisted instructions and their dependencies to the front of the loop."""
    body, write = ins.called[0], Writer(ins.computation)
    parameter, needed = body.parameters[0], _dependencies(plan.hoisted)
    copies: dict[Instruction, Instruction] = {}
    for inner in body.post_order() if needed else ():
        if inner not in needed or inner is parameter:
            continue
        if inner.opcode == "get-tuple-element" and inner.operands[0] is parameter:
            copies[inner] = _element(write, ins.operands[0], int(inner.attrs["index"]))
        else:
            copies[inner] = copy_instruction(inner, ins.computation, [copies[o] for o in inner.operands])
    return [copies[i] for i in plan.hoisted]


def _dependencies(roots: list[Instruction], stop: frozenset[Instruction] = frozenset()) -> set[Instruction]:
    """Return the instructions that `roots` depend on, with themselves; those in `stop` have no dependencies."""
    visited: set[Instruction] = set()
    stack = list(roots)
    while stack:
        ins = stack.pop()
        if ins not in visited:
            visited.add(ins)
            stack.extend(() if ins in stop else ins.operands)
    return visited


def _copy(source: Computation, state: Shape, plan: _Plan, results: list[Instruction] | None) -> Computation:
    """Copy a condition, or a body that returns `results` as the kept elements, to a computation on the new state."""
    module = source.module
    assert module is not None
    target = module.new_computation(source.name)
    target.execution_thread = source.execution_thread
    old = source.parameters[0]
    write = Writer(target)
    parameter = target.add("parameter", (), {"parameter_number": 0}, shape=state, name=old.name)
    elements = {n: k for k, n in enumerate(plan.kept)}
    carried = [
        write.op("get-tuple-element", parameter, shape=state.elements[len(elements) + k], index=len(elements) + k)
        for k in range(len(plan.hoisted))
    ]
    copies: dict[Instruction, Instruction] = {}
    if results is not None:
        copies.update(zip(plan.hoisted, carried, strict=True))
    needed = _dependencies([source.root] if results is None else results, frozenset(copies))
    for ins in source.post_order():
        if ins not in needed or ins in copies or ins is old:
            continue
        if ins.opcode == "get-tuple-element" and ins.operands[0] is old:
            number = int(ins.attrs["index"])
            if number in plan.sunk:
                copies[ins] = copy_instruction(plan.sunk[number], target, ())
            else:
                copies[ins] = write.op("get-tuple-element", parameter, shape=ins.shape, index=elements[number])
        else:
            copies[ins] = copy_instruction(ins, target, [copies[o] for o in ins.operands])
    if results is None:
        target.root = copies[source.root]
    else:
        parts = [copies[r] for r in results] + carried
        target.root = target.add("tuple", parts, shape=state)
    return target
