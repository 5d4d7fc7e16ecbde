"""Steps of reductions, searches for extremes and scans."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.kernel.cumulative_windows import prefix
from cyxla.xla.cpu.kernel.sum_order import MAX_UNBLOCKED_ROW, MIN_ROW_LENGTH, PART_NS
from cyxla.xla.cpu.prebuilt import reduction_calls
from cyxla.xla.cpu.prebuilt.buffers import align
from cyxla.xla.cpu.prebuilt.coverage import NotCoveredError
from cyxla.xla.cpu.prebuilt.forms import LANED, OPCODES
from cyxla.xla.cpu.prebuilt.recipe_writer import RecipeWriter
from cyxla.xla.cpu.prebuilt.reduction_calls import ReductionCall, Sizes
from cyxla.xla.cpu.prebuilt.steps.moves import move, read_strides_of
from cyxla.xla.cpu.prebuilt.strided_operands import row_major
from cyxla.xla.cpu.prebuilt.survey import Survey
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.combiners import combiner

SCAN_NS: Final = 0.5  # ns of an element of a scan, assumed


def reduce(writer: RecipeWriter, ins: Instruction) -> None:
    """Call a function of `prebuilt.reductions`."""
    reduced, dtype = ins.attrs["dimensions"], ins.shape.dtype
    if len(ins.operands) != 2 or not reduced:
        raise NotCoveredError("a reduction of several arrays, or along no dimension")
    operand, start = ins.operands
    name = combiner(ins.called[0])
    function = writer.function(f"reduce_{name}_{dtype}")
    is_sum = dtype.is_float and name in LANED
    if is_sum and writer.survey.exact:
        _check_sum(writer.survey, ins)
    sizes = _sizes(operand.shape.dims, reduced)
    sum_parts = 1 if writer.survey.exact or not is_sum else reduction_calls.sum_parts(ins, sizes)
    source, sizes = _adjacent(writer, ins, sizes, is_sum=is_sum)
    ns = operand.shape.size * scalar.cost("maximum", dtype)
    if dtype.is_complex:
        calls = [ReductionCall([*sizes], 1)]
    elif is_sum:
        calls = reduction_calls.sums(sizes, sum_parts, ns)
    else:
        calls = reduction_calls.reductions(sizes, ns)
    partial = reduction_calls.partial_results(calls, sizes)
    parts = writer.buffers.temporary(align(partial * dtype.itemsize)) if partial else 0
    target = writer.buffers.allocate(ins)
    if ins.shape.size:
        for call in calls:
            to = target if call is calls[-1] else parts
            writer.call(function, call.tasks, (source, writer.buffers.of(start), to), call.numbers, ns)
            source, ns = parts, partial * scalar.cost("maximum", dtype)


def first_extreme(writer: RecipeWriter, ins: Instruction) -> None:
    """Call a function of `prebuilt.reductions` that searches for an extreme."""
    operand, axis, extreme = writer.survey.searches[ins]
    dtype = operand.shape.dtype
    function = writer.function(f"first_{extreme}_{ElementType.U8 if dtype is ElementType.PRED else dtype}")
    if not writer.survey.is_materialised(operand):
        raise NotCoveredError("the first of equal elements")
    sizes, ns = _sizes(operand.shape.dims, (axis,)), operand.shape.size * 2 * scalar.cost("maximum", dtype)
    call = reduction_calls.search(sizes, ns)
    target = writer.buffers.allocate(ins)
    if ins.shape.size:
        writer.call(function, call.tasks, (writer.buffers.of(operand), target), call.numbers, ns)


def reduce_window(writer: RecipeWriter, ins: Instruction) -> None:
    """Call a scan of `prebuilt.reductions`."""
    scanned = prefix(ins)
    is_same_shape = len(ins.operands) == 2 and ins.shape.dims == ins.operands[0].shape.dims
    if scanned is None or scanned.backward or not is_same_shape:
        raise NotCoveredError("a window that is no scan from the start")
    operand, start = ins.operands
    dtype, dims = ins.shape.dtype, ins.shape.dims
    function = writer.function(f"scan_{combiner(ins.called[0])}_{dtype}")
    source, sizes = _adjacent_scan(writer, operand, dims, scanned.dimension)
    ns = ins.shape.size * (scalar.cost("maximum", dtype) + SCAN_NS)
    call = reduction_calls.scan(sizes, ns)
    target = writer.buffers.allocate(ins)
    if ins.shape.size:
        writer.call(function, call.tasks, (source, writer.buffers.of(start), target), call.numbers, ns)


def _sizes(dims: Sequence[int], reduced: Sequence[int]) -> Sizes:
    """Return the sizes before the first reduced dimension, of those that are, and of the others."""
    first = min(reduced)
    others = [d for d in range(len(dims)) if d not in reduced]
    return Sizes(
        prod(dims[d] for d in others if d < first),
        prod(dims[d] for d in reduced),
        prod(dims[d] for d in others if d > first),
    )


def _adjacent(writer: RecipeWriter, ins: Instruction, sizes: Sizes, *, is_sum: bool) -> tuple[int, Sizes]:
    """Return the buffer of the operand of a reduction with adjacent reduced dimensions, and the sizes there.

    The operand is copied if it has these elsewhere or is no array in memory. The columns of a sum of floats become
    rows where native code runs along strided rows.
    """
    operand, reduced = ins.operands[0], ins.attrs["dimensions"]
    dims, strides = operand.shape.dims, read_strides_of(writer.survey, operand)
    others = [d for d in range(len(dims)) if d not in reduced]
    before = [d for d in others if d < min(reduced)]
    behind = [d for d in others if d > min(reduced)]
    order = [*before, *sorted(reduced), *behind]
    if is_sum and sizes.inner > 1 and reduction_calls.is_along_rows(sizes):
        order, sizes = [*before, *behind, *sorted(reduced)], Sizes(sizes.outer * sizes.inner, sizes.reduced, 1)
    if order == list(range(len(dims))) and writer.survey.is_materialised(operand):
        return writer.buffers.of(operand), sizes
    copied = writer.buffers.temporary(align(operand.shape.nbytes))
    sorted_dims = [dims[d] for d in order]
    buffers = (writer.buffers.of(operand), copied)
    sorted_strides = [strides[d] for d in order]
    move(writer, buffers, ins.shape.dtype.itemsize, sorted_dims, sorted_strides, row_major(sorted_dims))
    return copied, sizes


def _adjacent_scan(writer: RecipeWriter, operand: Instruction, dims: Sequence[int], axis: int) -> tuple[int, Sizes]:
    sizes = Sizes(prod(dims[:axis]), dims[axis], prod(dims[axis + 1 :]))
    if writer.survey.is_materialised(operand):
        return writer.buffers.of(operand), sizes
    copied = writer.buffers.temporary(align(operand.shape.nbytes))
    buffers = (writer.buffers.of(operand), copied)
    move(writer, buffers, operand.shape.dtype.itemsize, dims, [0] * len(dims), row_major(dims))
    return copied, sizes


def _check_sum(survey: Survey, ins: Instruction) -> None:
    """Raise unless native code sums in the order of the elements, lane by lane."""
    operand, reduced = ins.operands[0], ins.attrs["dimensions"]
    dims = operand.shape.dims
    row_length, rows = prod(dims[d] for d in reduced), prod(dims) // max(1, prod(dims[d] for d in reduced))
    if not 0 < row_length <= MAX_UNBLOCKED_ROW or (
        len(reduced) < len(dims) and (reduced != (len(dims) - 1,) or row_length < MIN_ROW_LENGTH)
    ):
        raise NotCoveredError("a sum of floats that is not along short rows")
    if row_length * rows * survey.element_ns > PART_NS:
        raise NotCoveredError("a sum of floats that may be split into parts")
    visited, stack = {operand}, [operand]
    while stack:
        source = stack.pop()
        if source in survey.uniform or source.opcode in ("parameter", "constant", "iota"):
            continue
        if source.opcode == "broadcast" and len(reduced) == 1 < len(dims) and source.operands[0].shape.rank <= 1:
            continue
        if source.opcode not in OPCODES:
            raise NotCoveredError(f"a sum of floats computed by {source.opcode}")
        operands = [o for o in source.operands if o not in visited]
        visited.update(operands)
        stack += operands
