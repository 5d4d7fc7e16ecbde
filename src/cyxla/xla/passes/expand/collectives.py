"""Remove collectives of one replica and one partition, which communicate with no other device.

Before::

    ENTRY main {
      x = f32[4] parameter(0)
      i = u32[] replica-id()
      ROOT y = f32[4] all-reduce(x), replica_groups={}, to_apply=add
    }

After::

    ENTRY main {
      ROOT x = f32[4] parameter(0)
      i = u32[] constant(0)
    }

A collective-permute without the pair {0,0} yields zeros, ragged-all-to-all copies rows. Modules of several replicas or
partitions are not changed.
"""

from __future__ import annotations

from cyxla.types import ElementType
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each
from cyxla.xla.passes.expand import ragged_all_to_all


def run(module: HloModule) -> bool:
    """Replace collectives by their result on one device."""
    if module.config.replica_count > 1 or module.config.num_partitions > 1:
        return False
    return rewrite_each(module, _REWRITES)


def _zero(ins: Instruction) -> Instruction:
    return Writer(ins.computation).constant(0, ElementType.U32)


def _identity(ins: Instruction) -> Instruction | None:
    if not ins.shape.is_tuple:
        x = ins.operands[0]
        return x if x.shape.compatible(ins.shape) else None
    if not all(o.shape.compatible(e) for o, e in zip(ins.operands, ins.shape.elements, strict=True)):
        return None
    return Writer(ins.computation).op("tuple", *ins.operands, shape=ins.shape)


def _permute(ins: Instruction) -> Instruction | None:
    if len(ins.operands) != 1 or not ins.operands[0].shape.compatible(ins.shape):
        return None
    return ins.operands[0] if (0, 0) in ins.attrs["source_target_pairs"] else Writer(ins.computation).full(0, ins.shape)


def _done(ins: Instruction) -> Instruction | None:
    """Return the result of a start/done pair: the start computes nothing, its operands are the result."""
    start = ins.operands[0]
    if not start.opcode.endswith("-start"):
        return None
    if start.opcode == "collective-permute-start" and (0, 0) not in start.attrs["source_target_pairs"]:
        return Writer(ins.computation).full(0, ins.shape) if ins.shape.is_array else None
    if ins.shape.is_array:
        return start.operands[0] if start.operands[0].shape.compatible(ins.shape) else None
    return Writer(ins.computation).op("tuple", *start.operands, shape=ins.shape)


_REWRITES = {
    "all-gather": _identity,
    "all-gather-done": _done,
    "all-reduce": _identity,
    "all-reduce-done": _done,
    "all-to-all": _identity,
    "collective-broadcast": _identity,
    "collective-permute": _permute,
    "collective-permute-done": _done,
    "partition-id": _zero,
    "ragged-all-to-all": ragged_all_to_all.expand,
    "reduce-scatter": _identity,
    "replica-id": _zero,
}
