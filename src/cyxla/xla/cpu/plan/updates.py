"""Updates of arrays in place: what they read of the array that they overwrite."""

from __future__ import annotations

from cyxla.xla.cpu.kernel.groups import is_loopable
from cyxla.xla.cpu.kernel.values import leaves, resolve
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import any_behind
from cyxla.xla.passes.simplify.index_ranges import constant

_REASON = "it reads other elements of the array that it is written to"


def is_updated_box(ins: Instruction, root: Instruction) -> bool:
    """Return whether an instruction reads the box that an update overwrites, element by element."""
    starts = root.operands[2:]
    if ins.shape.dims != root.operands[1].shape.dims or resolve(root.operands[0]) != resolve(ins.operands[0]):
        return False
    if ins.operands[0].shape.dims != root.shape.dims or len(starts) != root.shape.rank:
        return False
    if ins.opcode == "dynamic-slice":
        return len(ins.operands) == 1 + len(starts) and all(
            a is b for a, b in zip(ins.operands[1:], starts, strict=True)
        )
    if ins.opcode != "slice":
        return False
    boxes = zip(ins.attrs["slice"], map(constant, starts), strict=True)
    return all(d.stride == 1 and d.start == start for d, start in boxes)


def updates_from_elsewhere(computation: Computation) -> dict[Instruction, str]:
    """Return the updates that read other elements of the array they are written to, with the reason to store them.

    An update that is computed in place reads all of these elements from copies.
    """
    found: dict[Instruction, str] = {}
    for ins in computation.instructions:
        if ins.opcode != "dynamic-update-slice" or ins.shape.is_dynamic:
            continue
        new = resolve(ins.operands[1]).instruction
        if new.shape.is_array and new.shape.size > 1 and is_loopable(new) and _reads_elsewhere(new, ins):
            found[new] = _REASON
    return found


def _reads_elsewhere(new: Instruction, root: Instruction) -> bool:
    target = resolve(root.operands[0])

    def reads_elsewhere(ins: Instruction) -> bool:
        return any(v == target for o in ins.operands for v in leaves(o)) and not is_updated_box(ins, root)

    def followed(ins: Instruction) -> list[Instruction]:
        inner = [v.instruction for o in ins.operands for v in leaves(o) if v != target]
        return [i for i in inner if i.operands and is_loopable(i)]

    return any_behind(new, reads_elsewhere, followed)
