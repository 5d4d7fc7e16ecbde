"""Loops as one kernel: with the state in locals, of blocks, or with arrays in memory."""

from __future__ import annotations

from dataclasses import replace

from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import Step
from cyxla.xla.cpu.loops.blocked_while import emit_blocked_while
from cyxla.xla.cpu.loops.local_while import emit_local_while, indexes_small_arrays
from cyxla.xla.cpu.nests.emit import emit_nest
from cyxla.xla.passes.simplify.index_ranges import IndexRanges
from cyxla.xla.service.refusal import Refusal


def loop_kernel(group: Group, ranges: IndexRanges, *, live: bool = False) -> tuple[Step | None, list[Refusal]]:
    """Return the kernel of a loop, or None and the reasons for which it has none.

    Parameters
    ----------
    group : Group
        Loop.
    ranges : IndexRanges
        Ranges of scalars in the program.
    live : bool
        True if of some array in its state a leading part alone matters.
    """
    (ins,) = group.instructions
    nest = emit_nest(ins, ranges, live=live) if indexes_small_arrays(ins) else None
    if isinstance(nest, Step):
        return replace(nest, groups=(group,)), []
    local = emit_local_while(ins, ranges)
    if isinstance(local, Step):
        return replace(local, groups=(group,)), []
    blocked = emit_blocked_while(ins)
    if isinstance(blocked, Step):
        return replace(blocked, groups=(group,)), []
    if nest is None:
        nest = emit_nest(ins, ranges, live=live)
    if isinstance(nest, Step):
        return replace(nest, groups=(group,)), []
    subject = f"while {ins.shape.static}"
    return None, [
        Refusal("loop", subject, f"not one kernel with the state in locals, since: {local}"),
        Refusal("loop", subject, f"not one kernel of blocks, since: {blocked}"),
        Refusal("loop", subject, f"not one kernel with arrays in memory, since: {nest}"),
    ]
