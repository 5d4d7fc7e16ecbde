"""Buffer reuse that was refused: operands that a kernel could overwrite, but does not."""

from __future__ import annotations

from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.memory.buffers import Buffers
from cyxla.xla.cpu.memory.lifetimes import Sharing, live_ranges
from cyxla.xla.cpu.plan.nodes import Plan
from cyxla.xla.service.refusal import Refusal


def refusals(plan: Plan, buffers: Buffers) -> dict[Value, Refusal]:
    """Return the results that have a buffer of their own although their kernel can work in place.

    Parameters
    ----------
    plan : Plan
        Plan of the entry computation.
    buffers : Buffers
        Buffer assignment of the plan.
    """
    ranges = live_ranges(plan, buffers.donations)
    required = [s for sharings in ranges.must_share.values() for s in sharings]
    results = {v: n for n, v in enumerate(plan.results)}
    refused: dict[Value, Refusal] = {}
    for sharing in (*required, *ranges.may_share):
        target, source = sharing.target.value, sharing.source.value
        if target is None or source is None or buffers.locations[target] == buffers.locations[source]:
            continue
        reason = _reason(sharing, target in results and source in results)
        refused[target] = Refusal("in place", f"{target.instruction.opcode} {target.shape}", f"its operand {reason}")
    return refused


def _reason(sharing: Sharing, both_results: bool) -> str:
    source, value = sharing.source, sharing.source.value
    if source.fixed:
        constant = value is not None and value.instruction.opcode == "constant"
        return "is a constant" if constant else "is an argument that is not donated"
    if not sharing.reads_once:
        return "is read by the kernel through another operand too"
    if source.end > sharing.moment:
        return "is read again later"
    return "is another result" if both_results else "shares its buffer with another array"
