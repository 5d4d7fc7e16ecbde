"""Plan a computation as a sequence of kernels, loops and branches."""

from __future__ import annotations

from cyxla.xla.cpu.emitters import emit
from cyxla.xla.cpu.kernel.kernel import Step
from cyxla.xla.cpu.kernel.values import CONTROL_FLOW, leaves, own_leaves, resolve
from cyxla.xla.cpu.loops.blocked_while import emit_blocked_while
from cyxla.xla.cpu.loops.local_while import emit_local_while
from cyxla.xla.cpu.plan.fusion import fuse
from cyxla.xla.cpu.plan.horizontal_fusion import fuse_small_kernels
from cyxla.xla.cpu.plan.nodes import ConditionalNode, KernelNode, Node, Plan, WhileNode
from cyxla.xla.cpu.plan.schedule import defer_overwriters
from cyxla.xla.hlo import Computation, Instruction

MAX_NESTING = 100  # of loops and branches


def plan(computation: Computation) -> Plan:
    """Decide which kernels run a computation, and in what order.

    Parameters
    ----------
    computation : Computation
        Computation without calls, without bodies shared by loops or branches, nested no deeper than `MAX_NESTING`.

    Raises
    ------
    UnimplementedError
        Some instruction has no native code.
    """
    nodes: list[Node] = []
    reasons: list[str] = []
    for group in fuse(computation, materialised=_materialised(computation)):
        first = group.instructions[0]
        reasons += group.reasons
        if first.opcode == "while":
            nodes.append(_while(first, reasons))
        elif first.opcode == "conditional":
            nodes.append(_conditional(first))
        else:
            nodes.extend(KernelNode(step) for step in emit(group))
    parameters = [leaf for p in computation.parameters for leaf in own_leaves(p)]
    ordered = fuse_small_kernels(defer_overwriters(nodes), reasons)
    return Plan(computation, ordered, parameters, leaves(computation.root), reasons)


def _while(ins: Instruction, reasons: list[str]) -> Node:
    small = emit_local_while(ins)
    if isinstance(small, Step):
        return KernelNode(small)
    lanes = emit_blocked_while(ins)
    if isinstance(lanes, Step):
        return KernelNode(lanes)
    reasons.append(f"while {ins.shape.static}: not in locals: {small}; not block by block: {lanes}")
    body, condition = ins.called
    return WhileNode(leaves(ins.operands[0]), own_leaves(ins), plan(condition), plan(body))


def _conditional(ins: Instruction) -> ConditionalNode:
    arguments = [leaves(o) for o in ins.operands[1:]]
    branches = [plan(c) for c in ins.called]
    return ConditionalNode(resolve(ins.operands[0]), branches, arguments, own_leaves(ins))


def _materialised(computation: Computation) -> set[Instruction]:
    """Return the instructions to keep in memory: results, and operands of loops, branches and barriers."""
    wanted = {v.instruction for v in leaves(computation.root)}
    for ins in computation.instructions:
        if ins.opcode in CONTROL_FLOW or ins.opcode == "opt-barrier":
            wanted.update(v.instruction for o in ins.operands for v in leaves(o))
    return wanted
