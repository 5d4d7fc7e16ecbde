"""Emitter of reductions and windows, with their fused operands and their epilogue.

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
from cyxla.xla.cpu.kernel.groups import Group, GroupKind, prefix
from cyxla.xla.cpu.kernel.kernel import KernelKind, Step, Value
from cyxla.xla.cpu.kernel.sum_order import MAX_PARTS, MIN_ROW_LENGTH, PART_NS
from cyxla.xla.cpu.kernel.temporaries import temporary
from cyxla.xla.cpu.kernel.values import own_leaves
from cyxla.xla.cpu.loops.elementwise import describe
from cyxla.xla.cpu.loops.index_map import ZERO, Affine, Condition
from cyxla.xla.cpu.loops.loop_ir import Body, Reads
from cyxla.xla.cpu.loops.loop_kernel import MAX_UNBLOCKED_TRIP, Blocks, KernelFrame, assemble
from cyxla.xla.cpu.loops.nodes import Node
from cyxla.xla.cpu.reduce.accumulators import Accumulator, accumulator
from cyxla.xla.cpu.reduce.arg_reductions import is_arg_reduction
from cyxla.xla.cpu.reduce.loops import COLUMN_BLOCK, by_columns, by_lanes, by_rows, part, style
from cyxla.xla.cpu.reduce.problem import Problem, lower_problem
from cyxla.xla.cpu.reduce.scans import scan_step
from cyxla.xla.cpu.reduce.small_windows import is_small, window_step
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.combiners import combiner


# ------------------------------------------------------------------------------------------------------------- groups
@emits_group(GroupKind.REDUCE)
def reduce(group: Group) -> list[Step]:
    """Emit a reduction with its fused operands and epilogue; in two steps if one would leave cores idle."""
    root = group.root
    count = len(root.operands) // 2
    arrays, inits = root.operands[:count], root.operands[count:]
    gone = root.attrs["dimensions"]
    dims = arrays[0].shape.dims
    kept = [d for d in range(len(dims)) if d not in gone]

    def elements(body: Body, at: Sequence[Affine], along: Sequence[Affine]) -> tuple[list[Node], tuple[Condition, ...]]:
        coordinates = [ZERO] * len(dims)
        for d, c in [*zip(kept, at, strict=True), *zip(gone, along, strict=True)]:
            coordinates[d] = c
        index = body.space.index(dims, tuple(coordinates))
        return [body.value(a, index) for a in arrays], ()

    problem = Problem(
        group, root, tuple(dims[d] for d in kept), tuple(dims[d] for d in gone), elements, inits, own_leaves(root)
    )
    problem.writes = tuple(v for o in group.outputs for v in own_leaves(o))
    problem.acc = _recognised(root)
    problem.arg_reduction = bool(gone) and problem.acc is None and is_arg_reduction(root.called[0])
    problem.applies_init = bool(gone)  # without dimensions the result is the operand
    return _steps(problem)


@emits_group(GroupKind.REDUCE_WINDOW)
def reduce_window(group: Group) -> list[Step]:
    """Emit sliding windows: a reduction over the window's dims for every element of the result."""
    root = group.root
    found, acc = prefix(root), _recognised(root)
    steps = acc is not None or scalar_computation.unsupported_reason(root.called[0]) is None
    if found is not None and steps and all(o.shape.size == root.shape.size for o in group.outputs):
        return [scan_step(group, found, acc)]
    if acc is not None and is_small(group, acc):
        return [window_step(group, acc)]
    count = len(root.operands) // 2
    arrays, inits = root.operands[:count], root.operands[count:]
    dims, window = arrays[0].shape.dims, root.attrs["window"] or ()

    def elements(body: Body, at: Sequence[Affine], along: Sequence[Affine]) -> tuple[list[Node], tuple[Condition, ...]]:
        space = body.space
        conditions: list[Condition] = []
        coordinates: list[Affine] = []
        for o, w, n, spec in zip(at, along, dims, window, strict=True):
            place = space.combine(((o, spec.stride), (w, spec.window_dilation))).shifted(-spec.padding_low)
            mine = [Condition(place, 0, (n - 1) * spec.base_dilation)]
            if spec.base_dilation > 1:
                mine.append(Condition(space.remainder(place, spec.base_dilation), 0, 0))
                place = space.quotient(place, spec.base_dilation)
            unsettled = tuple(c for c in mine if c.decided is not True)
            coordinates.append(space.choice(unsettled, place, n - 1) if unsettled else place)
            conditions += unsettled
        index = space.index(dims, tuple(coordinates))
        return [body.value(a, index) for a in arrays], tuple(conditions)

    kept = root.shape.leaves()[0].dims
    sizes = tuple(w.size for w in window) if arrays[0].shape.size else (0,) * len(dims)
    problem = Problem(group, root, kept, sizes, elements, inits, own_leaves(root))
    problem.writes = tuple(v for o in group.outputs for v in own_leaves(o))
    problem.acc = _recognised(root)
    return _steps(problem)


def _recognised(root: Instruction) -> Accumulator | None:
    opcode = combiner(root.called[0]) if root.shape.is_array else None
    return accumulator(opcode, root.shape.dtype) if opcode is not None else None


# -------------------------------------------------------------------------------------------------------------- steps
def _steps(problem: Problem) -> list[Step]:
    parts = _parts(problem)
    if parts == 1:
        return [_step(problem)]
    types = [problem.acc.total_dtype] if problem.acc is not None else [v.shape.dtype for v in problem.results]
    between = tuple(temporary(problem.root, Shape.array(t, (*problem.kept, parts))) for t in types)
    first = _step(_first_phase(problem, between), parts)
    return [first, _step(_second_phase(problem, between, parts))]


def _parts(problem: Problem) -> int:
    """Return the number of parts to split the reduced dims into, for enough parallel work."""
    ns = cost.element_ns(problem.group.instructions) * problem.points + cost.memory_ns(problem.points * 4)
    serial = problem.acc is None and not problem.arg_reduction
    if serial or problem.root.opcode != "reduce" or problem.results[0].shape.dtype.is_complex:
        return 1
    rows, wanted = prod(problem.kept), min(int(ns / PART_NS), MAX_PARTS)
    if wanted < 2 or rows >= 4 * wanted * (COLUMN_BLOCK // 4) or (rows >= wanted and _is_row(problem)):
        return 1
    lowered = lower_problem(problem, Reads(), 1)
    if style(lowered, 1) not in (by_rows, by_columns, by_lanes):
        return 1
    outer = lowered.reduced[0][1]  # the loop that is split; an innermost one at its blocks
    if len(lowered.reduced) == 1 and style(lowered, 1) is not by_columns:
        outer = (
            Blocks.of(outer, blocked=outer > MAX_UNBLOCKED_TRIP, overlap=False).count
            if outer > MAX_UNBLOCKED_TRIP
            else 1
        )
    return max(1, min(wanted, outer // 8))


def _is_row(problem: Problem) -> bool:
    gone = problem.root.attrs["dimensions"]
    return len(problem.root.operands[0].shape.dims) - 1 in gone and problem.reduced[-1] >= MIN_ROW_LENGTH


def _first_phase(problem: Problem, between: tuple[Value, ...]) -> Problem:
    inits = problem.inits if problem.arg_reduction else ()
    return replace(problem, inits=inits, writes=between, applies_init=False)


def _second_phase(problem: Problem, between: tuple[Value, ...], parts: int) -> Problem:
    def elements(body: Body, at: Sequence[Affine], along: Sequence[Affine]) -> tuple[list[Node], tuple[Condition, ...]]:
        index = body.space.index(between[0].shape.dims, (*at, *along))
        return [body.load(b.shape.dtype, body.reads.slot(b), index.linear) for b in between], ()

    return replace(problem, reduced=(parts,), elements=elements, applies_init=True)


def _step(problem: Problem, parts: int = 1) -> Step:
    reads = Reads()
    lowered = lower_problem(problem, reads, parts)
    frame = KernelFrame(reads, problem.writes)
    ns = cost.element_ns(problem.group.instructions) * problem.points
    ns += sum(cost.memory_ns(min(v.shape.nbytes, problem.points * 8)) for v in reads.values)
    if not prod(problem.kept):
        text = assemble([], frame, KernelKind.REDUCE)
    else:
        kind = KernelKind(problem.root.opcode)
        text = assemble([part(lowered, frame, ns, parts)], frame, kind, note=describe(problem.group))
    return Step(text, reads.values, problem.writes)


def _check(ins: Instruction) -> str | None:
    if ins.shape.is_dynamic or any(o.shape.is_dynamic for o in ins.operands):
        return f"{ins.opcode} with dynamic sizes"
    return scalar_computation.unsupported_reason(ins.called[0])


fusible("reduce", "reduce-window", check=_check)
