"""Verifier: the rules of HLO between instructions. Every program that passes can be evaluated and compiled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cyxla.errors import FailedPreconditionError, InvalidArgumentError, OpError, ShapeError
from cyxla.types import Shape
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.limits import (
    MAX_ARRAY_BYTES,
    MAX_COMPUTATIONS,
    MAX_INSTRUCTIONS,
    MAX_LEAVES,
    MAX_RANK,
    check_empty,
    check_limit,
)
from cyxla.xla.hlo.module import HloModule
from cyxla.xla.hlo.ops.checks import same_value
from cyxla.xla.hlo.shape_inference import infer_instruction

# Opcodes that the operand of the second half of an asynchronous operation may have.
STARTS = {
    "all-gather-done": ("all-gather-start",),
    "all-reduce-done": ("all-reduce-start",),
    "async-done": ("async-start", "async-update"),
    "async-update": ("async-start", "async-update"),
    "collective-permute-done": ("collective-permute-start",),
    "copy-done": ("copy-start",),
}


def verify(module: HloModule) -> None:
    """Check every rule of HLO.

    Parameters
    ----------
    module : HloModule
        The module, which is not changed. Computations that the entry does not reach are checked as well.

    Raises
    ------
    InvalidArgumentError
        A rule is violated; `where` names computation and instruction. Shape and type errors are of this class.
    ResourceExhaustedError
        The program is larger than `cyxla.xla.hlo.limits` allows.
    """
    check_limit(len(module.computations), MAX_COMPUTATIONS, "computations", module.name)
    check_limit(module.instruction_count, MAX_INSTRUCTIONS, "instructions", module.name)
    _check_names(module)
    _check_entry(module)
    for comp in _callees_first(module):
        _check_computation(comp, module)
    _check_entry_layout(module)
    _check_aliases(module)


def verify_computation(comp: Computation) -> None:
    """Check the rules that concern one computation; its callees are taken as valid.

    Raises
    ------
    InvalidArgumentError
        A rule is violated.
    """
    _check_computation(comp, None)


def _raise_violation(rule: str, message: str, location: str, error: type[OpError] = InvalidArgumentError) -> None:
    raise error(message, rule=f"module {rule}", where=location)


def _location(ins: Instruction) -> str:
    return f"{ins!r} of computation {ins.computation.name}"


def _check_names(module: HloModule) -> None:
    for name, comp in module.computations.items():
        if comp.name != name or comp.module is not module:
            _raise_violation("V1", f"computation {comp.name} is not the module's {name}", module.name)


def _check_entry(module: HloModule) -> None:
    try:
        entry = module.entry
    except FailedPreconditionError as e:
        raise InvalidArgumentError(e.message, rule="module V2", where=module.name) from None
    if module.computations.get(entry.name) is not entry:
        _raise_violation("V2", f"the entry {entry.name} is not one of the module's computations", module.name)


def _callees_first(module: HloModule) -> Iterable[Computation]:
    """Return the computations, callees before callers."""
    done: dict[Computation, None] = {}
    open_: set[Computation] = set()
    called = {c: list(dict.fromkeys(x for i in c.instructions for x in i.called)) for c in module.computations.values()}
    for start in called:
        stack = [start]
        while stack:
            comp = stack[-1]
            before = [c for c in called[comp] if c not in done]
            if comp in done or not before:
                done[stack.pop()] = None
                continue
            if comp in open_:
                _raise_violation("V3", f"computation {comp.name} calls itself, directly or through others", module.name)
            open_.add(comp)
            _check_called(comp, before, called)
            stack += before
    return done


def _check_called(comp: Computation, callees: Iterable[Computation], positions: dict[Computation, Any]) -> None:
    for c in callees:
        if c not in positions:
            _raise_violation("V4", f"computation {comp.name} calls {c.name}, which is not of its module", comp.name)


def _check_computation(comp: Computation, module: HloModule | None) -> None:
    _check_graph(comp)
    _check_parameters(comp)
    root = comp._root
    if root is None or root not in comp.instructions:
        _raise_violation("V8", f"computation {comp.name} has no root, or the root of another computation", comp.name)
    for ins in comp.instructions:
        _check_shape(ins)


def _check_graph(comp: Computation) -> None:
    """Check that operands belong to the computation, users mirror operands, and there is no cycle."""
    members = comp.instructions
    visited: set[Instruction] = set()
    reads = uses = 0
    is_ordered = True
    for ins in members:
        if ins.computation is not comp:
            _raise_violation(
                "V5",
                f"the instruction refers to computation {ins.computation.name}, but belongs to {comp.name}",
                _location(ins),
            )
        for o in ins.operands:
            if o not in visited:
                if o not in members:
                    _raise_violation(
                        "V5",
                        f"operand %{o.name or o.opcode} is of another computation, {o.computation.name}",
                        _location(ins),
                    )
                is_ordered = False
            if o.users.get(ins) != 1 and o.users.get(ins) != ins.operands.count(o):
                _raise_violation("V6", f"operand %{o.name or o.opcode} does not know this user", _location(ins))
        reads += len(ins.operands)
        uses += sum(ins.users.values()) if ins.users else 0
        is_ordered = _check_control(ins, members, visited) and is_ordered
        visited.add(ins)
    if reads != uses:
        _raise_violation("V6", f"{uses} uses are recorded, but there are {reads} operands", comp.name)
    if not is_ordered:
        comp.post_order()  # raises where instructions form a cycle


def _check_control(ins: Instruction, members: dict[Instruction, None], visited: set[Instruction]) -> bool:
    for p in ins.control_predecessors:
        if p not in members:
            _raise_violation(
                "V5", f"control predecessor %{p.name or p.opcode} is of another computation", _location(ins)
            )
    return all(p in visited for p in ins.control_predecessors)


def _check_parameters(comp: Computation) -> None:
    numbers = [i.attrs["parameter_number"] for i in comp.instructions if i.opcode == "parameter"]
    if sorted(numbers) != list(range(len(numbers))):
        _raise_violation(
            "V7", f"parameters are numbered {sorted(numbers)}, not 0 to {len(numbers) - 1} each once", comp.name
        )


def _check_shape(ins: Instruction) -> None:
    try:
        inferred = infer_instruction(ins)
    except OpError as e:
        e.where = e.where or _location(ins)
        raise
    declared = ins.shape
    if inferred is not declared and inferred is not declared.logical and not same_value(inferred, declared):
        error = f"the result is {inferred}, but stated as {declared}"
        raise ShapeError(error, rule=f"{ins.opcode} result", where=_location(ins))
    starts = STARTS.get(ins.opcode)
    if starts is not None and ins.operands[0].opcode not in starts:
        _raise_violation(
            "V9", f"the operand is {ins.operands[0].opcode} instead of {' or '.join(starts)}", _location(ins)
        )
    if declared.nbytes > MAX_ARRAY_BYTES:
        check_limit(declared.nbytes, MAX_ARRAY_BYTES, "bytes in one array", _location(ins))
    if not declared.size:
        check_empty(declared, _location(ins))
    if declared.rank > MAX_RANK or declared.is_tuple:
        check_limit(declared.rank, MAX_RANK, "dimensions", _location(ins))
        check_limit(len(declared.leaves()), MAX_LEAVES, "tuple elements", _location(ins))


def _check_entry_layout(module: HloModule) -> None:
    layout, entry = module.config.entry_layout, module.entry
    if layout is None:
        return
    shapes = [p.shape for p in entry.parameters]
    if len(shapes) != len(layout.parameters):
        _raise_violation(
            "V10",
            f"entry_computation_layout has {len(layout.parameters)} parameters, the entry {len(shapes)}",
            module.name,
        )
    pairs = [(f"parameter {i}", *p) for i, p in enumerate(zip(layout.parameters, shapes, strict=True))]
    for name, stated, actual in [*pairs, ("result", layout.result, entry.root.shape)]:
        if not same_value(stated, actual):
            _raise_violation(
                "V10", f"entry_computation_layout has {name} {stated}, the entry {actual}", module.name, ShapeError
            )


def _check_aliases(module: HloModule) -> None:
    config, entry = module.config, module.entry
    if not config.input_output_alias and not config.buffer_donor:
        return
    shapes = [p.shape for p in entry.parameters]
    outputs: set[tuple[int, ...]] = set()
    inputs: set[tuple[int, tuple[int, ...]]] = set()
    for a in config.input_output_alias:
        result = _subshape(entry.root.shape, a.output_index, "result", module)
        parameter_shape = _parameter_subshape(shapes, a.parameter, a.parameter_index, module)
        if a.output_index in outputs or (a.parameter, a.parameter_index) in inputs:
            _raise_violation(
                "V12",
                f"input_output_alias names {a.output_index} or parameter {a.parameter} {a.parameter_index} twice",
                module.name,
            )
        if result.nbytes != parameter_shape.nbytes or result.is_tuple or parameter_shape.is_tuple:
            _raise_violation(
                "V12", f"result {result} cannot share memory with parameter {parameter_shape}", module.name, ShapeError
            )
        outputs.add(a.output_index)
        inputs.add((a.parameter, a.parameter_index))
    for d in config.buffer_donor:
        _parameter_subshape(shapes, d.parameter, d.parameter_index, module)
        if (d.parameter, d.parameter_index) in inputs:
            _raise_violation(
                "V13", f"parameter {d.parameter} {d.parameter_index} is donated or shared twice", module.name
            )
        inputs.add((d.parameter, d.parameter_index))


def _parameter_subshape(shapes: list[Shape], number: int, index: tuple[int, ...], module: HloModule) -> Shape:
    if not 0 <= number < len(shapes):
        _raise_violation("V11", f"an alias or donor names parameter {number} of {len(shapes)}", module.name)
    return _subshape(shapes[number], index, f"parameter {number}", module)


def _subshape(shape: Shape, index: tuple[int, ...], description: str, module: HloModule) -> Shape:
    try:
        return shape.subshape(index)
    except ShapeError:
        _raise_violation(
            "V11", f"an alias or donor refers to {index} of {description} {shape}", module.name, ShapeError
        )
        raise
