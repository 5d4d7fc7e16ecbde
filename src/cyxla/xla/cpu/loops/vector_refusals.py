"""Reasons for which the innermost loop of a body is not vectorised, or has scalar loads; for explanations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cyxla.types import ElementType
from cyxla.xla.cpu.c.target import isa_level
from cyxla.xla.cpu.c.vector_forms import scalar_reason
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.cpu.loops.index_map import Loop, Runtime, atoms_of
from cyxla.xla.cpu.loops.nodes import Apply, Constant, External, Load, Map, Node
from cyxla.xla.hlo import Instruction
from cyxla.xla.service.refusal import Refusal

if TYPE_CHECKING:
    from cyxla.xla.cpu.loops.hoisting import LoopNest
    from cyxla.xla.cpu.loops.loop_ir import Body

#: Bytes of the narrowest element that processors gather, load by an index of each lane.
_MIN_GATHERED_BYTES = 4


def vector_refusals(body: Body, nest: LoopNest | None) -> Iterator[Refusal]:
    """Yield the refusals of a loop body.

    Parameters
    ----------
    body : Body
        Body of the loops.
    nest : LoopNest or None
        Nest that its C was written in, which tells the innermost loop; without it, every node that is not
        loop-invariant counts as one of the innermost loop, and strides of loads are not known.
    """
    isa = isa_level()
    inside = {n for n in body.nodes if nest.depth_of(n) == nest.depth} if nest is not None else _varying(body)
    for node in body.nodes:
        if node not in inside:
            continue
        if isinstance(node, Apply):
            types = [*(o.dtype for o in node.operands), node.dtype]
            yield from _opcode(node.instruction, types, isa, by_constant=isinstance(node.operands[-1], Constant))
        elif isinstance(node, Map):
            for ins in node.computation.instructions:
                if ins.operands and ins.shape.is_array and all(o.shape.is_array for o in ins.operands):
                    types = [*(o.shape.dtype for o in ins.operands), ins.shape.dtype]
                    yield from _opcode(ins, types, isa, by_constant=ins.operands[-1].opcode == "constant")
        elif isinstance(node, Load) and nest is not None and node not in nest.replaced_loads:
            yield from _load(node, body, nest)


def _varying(body: Body) -> set[Node]:
    """Return the nodes that depend on a loop, or on a value that an emitter computes in one."""
    found: set[Node] = set()
    for node in body.nodes:
        looped = any(isinstance(a, Loop) for a in atoms_of(node.forms))
        if looped or isinstance(node, External) or any(o in found for o in node.operands):
            found.add(node)
    return found


def _opcode(ins: Instruction, types: list[ElementType], isa: str, *, by_constant: bool) -> Iterator[Refusal]:
    reason = scalar_reason(ins.opcode, types, isa, by_constant=by_constant)
    if reason:
        yield Refusal.of("vectorisation", ins, reason)


def _load(node: Load, body: Body, nest: LoopNest) -> Iterator[Refusal]:
    """Yield the refusal of a load whose lanes are loaded one at a time."""
    value, size = body.reads.values[node.slot], node.dtype.itemsize
    subject = f"{value.instruction.opcode} {value.shape}"
    stride = abs(node.form.coefficient(nest.inner)) * size if nest.inner is not None else 0
    if stride >= machine.LINE_BYTES:
        yield Refusal("vectorisation", subject, f"its elements are loaded one at a time, {stride} bytes apart")
    gathered = [a for a in atoms_of(node.forms) if isinstance(a, Runtime) and nest.depth_of_atom(a) == nest.depth]
    if gathered and size < _MIN_GATHERED_BYTES:
        reason = f"elements of {8 * size} bits at indices from an array are loaded one at a time"
        yield Refusal("vectorisation", subject, reason)
