"""Emitter of reductions, with their fused operands and their epilogue.

The order of a float sum depends on the shape alone: rows are spread over a fixed number of lanes, columns are added row
by row, and long reductions are split into a fixed number of parts whose totals a second kernel adds in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from cyxla.types import Shape
from cyxla.xla.cpu.c import scalar_computation
from cyxla.xla.cpu.emitters import emits_group, fusible
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.groups import Group, GroupKind
from cyxla.xla.cpu.kernel.kernel import KernelKind, Step, Value
from cyxla.xla.cpu.kernel.sum_order import COLUMN_BLOCK, MAX_PARTS, MIN_ROW_LENGTH, PART_NS
from cyxla.xla.cpu.kernel.temporaries import temporary
from cyxla.xla.cpu.kernel.values import own_leaves
from cyxla.xla.cpu.loops.elementwise import describe
from cyxla.xla.cpu.loops.index_map import ZERO, Affine, Condition
from cyxla.xla.cpu.loops.loop_ir import Body, Reads
from cyxla.xla.cpu.loops.loop_kernel import MAX_UNBLOCKED_TRIP, Blocks, KernelFrame, assemble
from cyxla.xla.cpu.loops.nodes import Node
from cyxla.xla.cpu.reduce.accumulators import Accumulator, accumulator
from cyxla.xla.cpu.reduce.arg_reductions import allows_any_order
from cyxla.xla.cpu.reduce.loops import by_columns, by_lanes, by_rows, choose_style, emit_part
from cyxla.xla.cpu.reduce.problem import Lowered, Problem, lower_problem
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.combiners import combiner


# ------------------------------------------------------------------------------------------------------------- groups
@emits_group(GroupKind.REDUCE)
def reduce(group: Group) -> list[Step]:
    """Emit a reduction with its fused operands and epilogue; in two steps if one would leave cores idle."""
    root = group.root
    count = len(root.operands) // 2
    arrays, inits = root.operands[:count], root.operands[count:]
    reduced = root.attrs["dimensions"]
    dims = arrays[0].shape.dims
    kept = [d for d in range(len(dims)) if d not in reduced]

    def elements(
        body: Body, kept_index: Sequence[Affine], reduced_index: Sequence[Affine]
    ) -> tuple[list[Node], tuple[Condition, ...]]:
        coordinates = [ZERO] * len(dims)
        for d, c in [*zip(kept, kept_index, strict=True), *zip(reduced, reduced_index, strict=True)]:
            coordinates[d] = c
        index = body.space.index(dims, tuple(coordinates))
        return [body.value(a, index) for a in arrays], ()

    problem = Problem(
        group, root, tuple(dims[d] for d in kept), tuple(dims[d] for d in reduced), elements, inits, own_leaves(root)
    )
    problem.writes = tuple(v for o in group.outputs for v in own_leaves(o))
    problem.acc = accumulator_of(root)
    problem.arg_reduction = bool(reduced) and problem.acc is None and len(arrays) == 2 and allows_any_order(root)
    problem.applies_init = bool(reduced)  # a reduction of no dimensions is its operand
    problem.live = group.live | {len(kept) + n: group.stops[d] for n, d in enumerate(reduced) if d in group.stops}
    return steps_of(problem)


def accumulator_of(root: Instruction) -> Accumulator | None:
    """Return the accumulator of a reduction or window; None if its combiner is not one operation."""
    opcode = combiner(root.called[0]) if root.shape.is_array else None
    return accumulator(opcode, root.shape.dtype) if opcode is not None else None


# -------------------------------------------------------------------------------------------------------------- steps
def steps_of(problem: Problem) -> list[Step]:
    """Return the steps of a reduction: two if one would leave cores idle."""
    parts = _parts(problem)
    if parts == 1:
        return [_step(problem)]
    types = [problem.acc.total_dtype] if problem.acc is not None else [v.shape.dtype for v in problem.results]
    partials = tuple(temporary(problem.root, Shape.array(t, (*problem.kept, parts))) for t in types)
    first = _step(_first_phase(problem, partials), parts)
    return [first, _step(_second_phase(problem, partials, parts))]


def _parts(problem: Problem) -> int:
    """Return the number of parts to split the reduced dims into, for enough parallel work."""
    ns = _compute_ns(problem)[0] + cost.memory_ns(problem.points * 4)
    serial = problem.acc is None and not problem.arg_reduction
    if serial or problem.root.opcode != "reduce" or problem.results[0].shape.dtype.is_complex:
        return 1
    rows, parts = prod(problem.kept), min(int(ns / PART_NS), MAX_PARTS)
    if parts < 2 or rows >= 4 * parts * (COLUMN_BLOCK // 4) or (rows >= parts and _is_row(problem)):
        return 1
    lowered = lower_problem(problem, Reads(), 1)
    if choose_style(lowered, 1) not in (by_rows, by_columns, by_lanes):
        return 1
    outer = lowered.reduced[0][1]  # trip count of the loop to split; an innermost loop is split into blocks
    if len(lowered.reduced) == 1 and choose_style(lowered, 1) is not by_columns:
        outer = (
            Blocks.of(outer, blocked=outer > MAX_UNBLOCKED_TRIP, overlap=False).count
            if outer > MAX_UNBLOCKED_TRIP
            else 1
        )
    return max(1, min(parts, outer // 8))


def _compute_ns(problem: Problem) -> tuple[float, float]:
    """Return the estimated times in ns of the operations on the elements, and of those on the results."""
    group = problem.group.instructions
    members = frozenset(group)
    reduced, pending = {problem.root}, [problem.root]
    while pending:
        operands = {o for o in pending.pop().operands if o in members and o not in reduced}
        reduced |= operands
        pending += operands
    each = cost.element_ns(i for i in group if i in reduced)
    behind = cost.element_ns(i for i in group if i not in reduced)
    return each * problem.points, behind * prod(problem.kept)


def _is_row(problem: Problem) -> bool:
    reduced = problem.root.attrs["dimensions"]
    return len(problem.root.operands[0].shape.dims) - 1 in reduced and problem.reduced[-1] >= MIN_ROW_LENGTH


def _first_phase(problem: Problem, partials: tuple[Value, ...]) -> Problem:
    inits = problem.inits if problem.arg_reduction else ()
    return replace(problem, inits=inits, writes=partials, applies_init=False)


def _second_phase(problem: Problem, partials: tuple[Value, ...], parts: int) -> Problem:
    def elements(
        body: Body, kept_index: Sequence[Affine], reduced_index: Sequence[Affine]
    ) -> tuple[list[Node], tuple[Condition, ...]]:
        index = body.space.index(partials[0].shape.dims, (*kept_index, *reduced_index))
        return [body.load(b.shape.dtype, body.reads.slot(b), index.linear) for b in partials], ()

    live = {d: sizes for d, sizes in problem.live.items() if d < len(problem.kept)}
    return replace(problem, reduced=(parts,), elements=elements, applies_init=True, live=live)


def _lower(problem: Problem, parts: int) -> tuple[Lowered, Reads]:
    """Lower a reduction, without the masks of elements at which its loops end."""
    reads = Reads()
    lowered = lower_problem(problem, reads, parts)
    if not problem.has_stops or choose_style(lowered, parts) is not by_rows:
        return lowered, reads
    own_reads = Reads()
    unmasked = lower_problem(replace(problem, unmasked=True), own_reads, parts)
    return (unmasked, own_reads) if choose_style(unmasked, parts) is by_rows else (lowered, reads)


def _step(problem: Problem, parts: int = 1) -> Step:
    lowered, reads = _lower(problem, parts)
    frame = KernelFrame(reads, problem.writes)
    ns = sum(_compute_ns(problem))
    ns += sum(cost.memory_ns(min(v.shape.nbytes, problem.points * 8)) for v in reads.values)
    if not prod(problem.kept):
        text = assemble([], frame, KernelKind.REDUCE)
    else:
        kind = KernelKind(problem.root.opcode)
        text = assemble([emit_part(lowered, frame, ns, parts)], frame, kind, note=describe(problem.group))
    return Step(text, reads.values, problem.writes)


def check(ins: Instruction) -> str | None:
    """Return the reason for which a reduction or window has no kernel; None if it has one."""
    if ins.shape.is_dynamic or any(o.shape.is_dynamic for o in ins.operands):
        return f"{ins.opcode} with dynamic sizes"
    return scalar_computation.unsupported_reason(ins.called[0])


fusible("reduce", check=check)
