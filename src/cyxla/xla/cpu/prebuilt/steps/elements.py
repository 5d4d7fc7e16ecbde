"""Steps of arguments and constants, and of element-wise operations."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from cyxla._native import kernels as library
from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.prebuilt.coverage import NotCoveredError
from cyxla.xla.cpu.prebuilt.forms import BLOCK, Form
from cyxla.xla.cpu.prebuilt.recipe_writer import BYTE_NS, RecipeWriter
from cyxla.xla.cpu.prebuilt.spreads import EACH, SAME
from cyxla.xla.hlo import Instruction

TASK: Final = 1 << 15  # elements of an element-wise operation that are one task
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
    source, uniform, spreads = survey.source, survey.uniform, survey.spreads
    types = tuple([o.shape.dtype for o in operands])
    function, ns = _find_form(opcode, ins.shape.dtype, types, ins.attrs.get("direction", ""), writer.suffix)
    if survey.exact and opcode == "power" and operands[1] in survey.maybe_constant:
        raise NotCoveredError("powers that the passes multiply out")
    read = [SAME if o in uniform else spreads.get(o, EACH) for o in operands]
    count = 1 if ins in uniform else ins.shape.size
    used = [buffers.by_source[source[o]] for o in operands]
    used.append(buffers.allocate(ins))
    if count:
        tasks = -(-count // TASK)
        row = max([s.row for s in read]) or count
        writer.call(function, tasks, used, (count, TASK, row, *[s.kind for s in read]), ns * max(count, BLOCK))


@cache
def _find_form(
    opcode: str, result: ElementType, types: tuple[ElementType, ...], direction: str, suffix: str
) -> tuple[int, float]:
    """Return the function of an element-wise opcode, and its time per element in ns."""
    form = Form(opcode, result, types, direction)
    if form.is_regular and form.name + suffix in library.numbers:
        return library.numbers[form.name + suffix], scalar.cost(opcode, types[0])
    raise NotCoveredError(f"{opcode} of {', '.join(map(str, types))} is not prebuilt")
