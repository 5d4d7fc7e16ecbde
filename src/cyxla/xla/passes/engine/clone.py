"""Copies of instructions, computations and modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cyxla.types import Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction


def copy_instruction(
    ins: Instruction,
    target: Computation,
    operands: Sequence[Instruction],
    *,
    called: Sequence[Computation] | None = None,
    shape: Shape | None = None,
) -> Instruction:
    """Append a copy of an instruction to a computation; attributes, which are never changed, are shared.

    Parameters
    ----------
    ins : Instruction
        Instruction to copy.
    target : Computation
        Computation to append to.
    operands : sequence of Instruction
        Operands of the copy, in `target`.
    called : sequence of Computation, optional
        Computations that the copy calls; by default the same.
    shape : Shape, optional
        Shape of the copy; by default the same.
    """
    new = object.__new__(Instruction)
    new.opcode, new.shape, new.operands = ins.opcode, ins.shape if shape is None else shape, tuple(operands)
    new.attrs, new.called = ins.attrs, ins.called if called is None else tuple(called)
    new.computation, new.name, new.metadata, new.extras = target, ins.name, ins.metadata, dict(ins.extras)
    new.users, new.control_predecessors = {}, ()
    for o in new.operands:
        o.users[new] = o.users.get(new, 0) + 1
    target.instructions[new] = None
    target.changed.append(new)
    return new


def copy_body(source: Computation, target: Computation, arguments: Sequence[Instruction]) -> Instruction:
    """Append copies of all instructions of `source`, with `arguments` for parameters; return the copy of the root."""
    copies: dict[Instruction, Instruction] = {}
    for ins in source.post_order():
        if ins.opcode == "parameter":
            copies[ins] = arguments[int(ins.attrs["parameter_number"])]
            continue
        new = copy_instruction(ins, target, [copies[o] for o in ins.operands])
        new.control_predecessors = tuple(copies[p] for p in ins.control_predecessors)
        copies[ins] = new
    return copies[source.root]


def clone(module: HloModule) -> HloModule:
    """Return a copy of the computations that a module's entry reaches, which passes may change.

    Names, metadata and configuration are kept; computations come callees first.
    """
    twin = HloModule(module.name)
    twin.config, twin.custom_call_locations = replace(module.config), module.custom_call_locations
    copies: dict[Computation, Computation] = {}
    for source in module.post_order():
        target = Computation(source.name)
        twin.add_computation(target)
        target.execution_thread, target.is_fusion = source.execution_thread, source.is_fusion
        _copy_computation(source, target, copies)
        copies[source] = target
    twin.entry = copies[module.entry]
    return twin


def _copy_computation(
    source: Computation, target: Computation, computations: Mapping[Computation, Computation]
) -> None:
    copies: dict[Instruction, Instruction] = {}
    for ins in source.post_order():
        called = [computations[c] for c in ins.called]
        new = copy_instruction(ins, target, [copies[o] for o in ins.operands], called=called)
        new.control_predecessors = tuple(copies[p] for p in ins.control_predecessors)
        copies[ins] = new
    target.root = copies[source.root]
    target.changed.clear()
