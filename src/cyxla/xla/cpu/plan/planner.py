"""Plan a computation as a sequence of kernels, loops and branches."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.values import CONTROL_FLOW, leaves, own_leaves, resolve
from cyxla.xla.cpu.plan.equal_groups import GroupEmitter
from cyxla.xla.cpu.plan.fusion import article, fuse
from cyxla.xla.cpu.plan.horizontal_fusion import fuse_small_kernels
from cyxla.xla.cpu.plan.live_groups import cut_groups
from cyxla.xla.cpu.plan.live_rows import LiveResult, live_rows
from cyxla.xla.cpu.plan.live_states import LoopState, live_results_of
from cyxla.xla.cpu.plan.nodes import ConditionalNode, KernelNode, Node, Plan, WhileNode
from cyxla.xla.cpu.plan.schedule import defer_overwriters
from cyxla.xla.cpu.plan.shared_matrices import share_matrices
from cyxla.xla.cpu.plan.updates import updates_from_elsewhere
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.passes.simplify.index_ranges import IndexRanges
from cyxla.xla.service.refusal import Refusal

MAX_NESTING = 100  # levels of loops and branches
_SIZE = "it is the number of live elements of other arrays"


def plan(computation: Computation, live_results: Sequence[LiveResult] = (), ranges: IndexRanges | None = None) -> Plan:
    """Plan the kernels of a computation, and their order.

    Parameters
    ----------
    computation : Computation
        Computation without calls, without bodies shared by loops or branches, nested no deeper than `MAX_NESTING`.
    live_results : sequence of LiveResult
        Results whose live elements alone are read (see `plan.live_rows`).
    ranges : IndexRanges, optional
        Ranges of scalars in the program; by default they are found for this computation.

    Raises
    ------
    UnimplementedError
        Some instruction has no native code.
    """
    nodes: list[Node] = []
    effects: list[int] = []
    reasons: list[Refusal] = []
    live = live_rows(computation, live_results)
    sizes = set() if live is None else live.sizes()
    forced = _materialised(computation) | dict.fromkeys(sizes, _SIZE)
    is_nested = ranges is not None
    if is_nested:
        forced |= updates_from_elsewhere(computation)
    groups = fuse(computation, materialised=forced, sizes=sizes, repeated=is_nested)
    emitter = GroupEmitter()
    for group in groups if live is None else cut_groups(computation, groups, live):
        first, position = group.instructions[0], len(nodes)
        reasons += group.reasons
        if first.opcode in CONTROL_FLOW:
            ranges = ranges or IndexRanges(computation)
        if first.opcode == "while":
            nodes.append(_while(group, reasons, ranges, {} if live is None else live.states.get(first, {})))
        elif first.opcode == "conditional":
            nodes.append(_conditional(first, ranges, () if live is None else live.branches.get(first, ())))
        else:
            nodes.extend(KernelNode(step) for step in emitter.emit(group))
        if any(ins.has_side_effect for ins in group.outputs):
            effects += range(position, len(nodes))
    parameters = [leaf for p in computation.parameters for leaf in own_leaves(p)]
    ordered = fuse_small_kernels(share_matrices(defer_overwriters(nodes, effects)), reasons)
    return Plan(computation, ordered, parameters, leaves(computation.root), reasons, live_results)


def _while(group: Group, reasons: list[Refusal], ranges: IndexRanges | None, state: LoopState) -> Node:
    from cyxla.xla.cpu.plan.loop_kernels import loop_kernel  # most programs have no loops

    assert ranges is not None
    kernel, refusals = loop_kernel(group, ranges, live=any(state.values()))
    if kernel is not None:
        return KernelNode(kernel)
    reasons += refusals
    (ins,) = group.instructions
    body, condition = ins.called
    planned = plan(body, live_results_of(ins, state), ranges=ranges)
    return WhileNode(leaves(ins.operands[0]), own_leaves(ins), plan(condition, ranges=ranges), planned)


def _conditional(ins: Instruction, ranges: IndexRanges | None, live: Sequence[LiveResult]) -> ConditionalNode:
    arguments = [leaves(o) for o in ins.operands[1:]]
    branches = [plan(c, live, ranges=ranges) for c in ins.called]
    return ConditionalNode(resolve(ins.operands[0]), branches, arguments, own_leaves(ins))


def _materialised(computation: Computation) -> dict[Instruction, str]:
    """Return the operands of loops, branches and barriers, which are kept in memory, with the reason."""
    reasons: dict[Instruction, str] = {}
    for ins in computation.instructions:
        if ins.opcode in CONTROL_FLOW or ins.opcode == "opt-barrier":
            reason = f"{article(ins.opcode)} takes it from memory"
            reasons.update((v.instruction, reason) for o in ins.operands for v in leaves(o))
    return reasons
