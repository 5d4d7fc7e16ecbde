"""Steps of arguments and constants, and of element-wise operations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from cyxla._native import kernels as library
from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.prebuilt.coverage import NotCoveredError
from cyxla.xla.cpu.prebuilt.forms import BLOCK, Form
from cyxla.xla.cpu.prebuilt.recipe_writer import BYTE_NS, Link, RecipeWriter
from cyxla.xla.cpu.prebuilt.strided_operands import Strided, merged_loops, row_major
from cyxla.xla.cpu.prebuilt.survey import Survey
from cyxla.xla.hlo import Instruction

MAX_IOTA_BYTES: Final = 1 << 24  # bytes of an iota, which becomes a constant


def parameter(writer: RecipeWriter, ins: Instruction) -> None:
    """Use the buffer of the caller."""
    writer.buffers.by_source[ins] = 2 * int(ins.attrs["parameter_number"]) + 1


def constant(writer: RecipeWriter, ins: Instruction) -> None:
    """Add a constant buffer."""
    writer.buffers.by_source[ins] = writer.buffers.constant(ins.shape, np.ascontiguousarray(ins.attrs["literal"].array))


def iota(writer: RecipeWriter, ins: Instruction) -> None:
    """Add the numbers as a constant buffer."""
    shape, axis = ins.shape, ins.attrs["iota_dimension"]
    if shape.nbytes > MAX_IOTA_BYTES:
        raise NotCoveredError(f"an iota of {shape.nbytes} bytes")
    numbers = np.arange(shape.dims[axis]).astype(shape.dtype.numpy_dtype)
    dims = [-1 if d == axis else 1 for d in range(len(shape.dims))]
    writer.cost += shape.nbytes * BYTE_NS
    writer.buffers.by_source[ins] = writer.buffers.constant(
        shape, np.ascontiguousarray(np.broadcast_to(numbers.reshape(dims), shape.dims))
    )


def elementwise(writer: RecipeWriter, ins: Instruction) -> None:
    """Call a function of `prebuilt.elementwise`."""
    survey, buffers = writer.survey, writer.buffers
    operands, opcode = survey.operands_of(ins), "clamp" if ins in survey.clamps else ins.opcode
    source, uniform = survey.source, survey.uniform
    types = tuple([o.shape.dtype for o in operands])
    function, ns = _find_form(opcode, ins.shape.dtype, types, ins.attrs.get("direction", ""), writer.suffix)
    if survey.exact and opcode == "power" and operands[1] in survey.maybe_constant:
        raise NotCoveredError("powers that the passes multiply out")
    count = 1 if ins in uniform else ins.shape.size
    used = [buffers.by_source[source[o]] for o in operands]
    result = buffers.allocate(ins)
    if count:
        apart = frozenset([b for b, o in zip(used, operands, strict=True) if o in uniform or o in survey.strided])
        itemsizes = tuple([o.shape.dtype.itemsize for o in (*operands, ins)])
        loops = _loops(survey, ins, operands, count)
        link = Link(function, tuple(used), result, count, itemsizes, apart, loops)
        writer.call_elementwise(link, ns * max(count, BLOCK))


def _loops(survey: Survey, ins: Instruction, operands: Sequence[Instruction], count: int) -> tuple[int, ...]:
    """Return the number of loops, their lengths, and the start and the strides of each operand."""
    if survey.strided.keys().isdisjoint(operands):
        starts: Sequence[int] = (0,) * len(operands)
        lengths: Sequence[int] = (count,)
        strides: Sequence[Sequence[int]] = [(0,) if o in survey.uniform else (1,) for o in operands]
    else:
        dims = ins.shape.dims
        read = [_elements(survey, o, dims) for o in operands]
        starts = [r.start for r in read]
        lengths, strides = merged_loops(dims, tuple([r.strides for r in read]))
    reads = [n for start, steps in zip(starts, strides, strict=True) for n in (start, *steps)]
    return (len(lengths), *lengths, *reads)


def _elements(survey: Survey, operand: Instruction, dims: Sequence[int]) -> Strided:
    """Return the elements of an operand in its buffer."""
    if operand in survey.uniform:
        return Strided((0,) * len(dims))
    return survey.strided.get(operand) or Strided(row_major(dims))


@cache
def _find_form(
    opcode: str, result: ElementType, types: tuple[ElementType, ...], direction: str, suffix: str
) -> tuple[int, float]:
    """Return the function of an element-wise opcode, and its time per element in ns."""
    form = Form(opcode, result, types, direction)
    if form.is_regular and form.name + suffix in library.numbers:
        return library.numbers[form.name + suffix], scalar.cost(opcode, types[0])
    raise NotCoveredError(f"{opcode} of {', '.join(map(str, types))} is not prebuilt")
