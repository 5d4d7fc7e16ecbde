"""Steps that move elements: from strided places of one buffer to those of another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod

from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.prebuilt.coverage import NotCoveredError
from cyxla.xla.cpu.prebuilt.forms import MAX_RANK
from cyxla.xla.cpu.prebuilt.recipe_writer import BYTE_NS, RecipeWriter
from cyxla.xla.cpu.prebuilt.strided_operands import STRIDED, merged_loops, row_major
from cyxla.xla.cpu.prebuilt.survey import Survey
from cyxla.xla.hlo import Instruction


def strided(writer: RecipeWriter, ins: Instruction) -> None:
    """Move the elements of a transpose, broadcast, reversal or slice."""
    (operand,), elements = ins.operands, STRIDED[ins.opcode](ins)
    buffers = (writer.buffers.of(operand), writer.buffers.allocate(ins))
    dims, size = ins.shape.dims, ins.shape.dtype.itemsize
    move(writer, buffers, size, dims, elements.strides, row_major(dims), elements.start)


def concatenate(writer: RecipeWriter, ins: Instruction) -> None:
    """Move each operand."""
    (axis,), strides = ins.attrs["dimensions"], row_major(ins.shape.dims)
    buffer, start = writer.buffers.allocate(ins), 0
    for operand in ins.operands:
        move(writer, (writer.buffers.of(operand), buffer), ins.shape.dtype.itemsize, operand.shape.dims,
             read_strides_of(writer.survey, operand), strides, 0, start * strides[axis])  # fmt: skip
        start += operand.shape.dims[axis]


def pad(writer: RecipeWriter, ins: Instruction) -> None:
    """Fill with the padding value, then move the operand."""
    operand, value = ins.operands
    buffer, size, strides = writer.buffers.allocate(ins), ins.shape.dtype.itemsize, row_major(ins.shape.dims)
    zeros = [0] * len(strides)
    move(writer, (writer.buffers.of(value), buffer), size, ins.shape.dims, zeros, strides)
    read_strides, dims, write_strides = read_strides_of(writer.survey, operand), [], []
    read_start = write_start = 0
    for n, padded, padding, read_stride, write_stride in zip(
        operand.shape.dims, ins.shape.dims, ins.attrs["padding"], read_strides, strides, strict=True
    ):
        step = padding.interior + 1
        begin = max(0, -(padding.low // step))  # the first element that is not cut off: a ceiling
        end = min(n, (padded - 1 - padding.low) // step + 1)
        dims.append(max(0, end - begin))
        write_strides.append(write_stride * step)
        read_start += begin * read_stride
        write_start += (padding.low + begin * step) * write_stride
    if prod(dims):
        buffers = (writer.buffers.of(operand), buffer)
        move(writer, buffers, size, dims, read_strides, write_strides, read_start, write_start)


def copy_out(writer: RecipeWriter, leaf: Instruction, buffer: int) -> None:
    """Move a value to the buffer of a result."""
    dims, buffers = leaf.shape.dims, (writer.buffers.of(leaf), buffer)
    move(writer, buffers, leaf.shape.dtype.itemsize, dims, read_strides_of(writer.survey, leaf), row_major(dims))


def move(
    writer: RecipeWriter, buffers: Sequence[int], size: int, dims: Sequence[int],
    read_strides: Sequence[int], write_strides: Sequence[int], read_start: int = 0, write_start: int = 0,
) -> None:  # fmt: skip
    """Write the step that moves elements of a size between two buffers."""
    if 0 in dims:
        return
    lengths, strides = merged_loops(tuple(dims), (tuple(read_strides), tuple(write_strides)))
    if lengths == (prod(dims),) and strides == ((1,), (1,)) and not read_start and not write_start:
        writer.copy(buffers[0], buffers[1], prod(dims) * size)
        return
    if len(lengths) > MAX_RANK:
        raise NotCoveredError(f"a move of {len(lengths)} dimensions")
    function = writer.function(f"move_{size}")
    ns = prod(dims) * (0.5 + size * BYTE_NS)
    tasks = cost.tasks(ns, lengths[0])
    loops = chain.from_iterable(zip(lengths, *strides, strict=True))
    numbers = [read_start, write_start, len(lengths), tasks, *loops]
    writer.call(function, tasks, buffers, numbers, ns)


def read_strides_of(survey: Survey, operand: Instruction) -> tuple[int, ...]:
    """Return the strides at which the elements of an operand are read."""
    dims = operand.shape.dims
    return (0,) * len(dims) if operand in survey.uniform else row_major(dims)
