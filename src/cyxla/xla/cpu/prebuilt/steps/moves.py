"""Steps that move elements: from strided places of one buffer to those of another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from cyxla.types import Shape
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.prebuilt.coverage import NotCoveredError
from cyxla.xla.cpu.prebuilt.forms import MAX_RANK
from cyxla.xla.cpu.prebuilt.recipe_writer import BYTE_NS, RecipeWriter
from cyxla.xla.cpu.prebuilt.survey import Survey
from cyxla.xla.hlo import Instruction


def transpose(writer: RecipeWriter, ins: Instruction) -> None:
    """Move with permuted strides."""
    (operand,), order = ins.operands, ins.attrs["dimensions"]
    strides = _strides(operand.shape)
    _move_all(writer, ins, operand, [strides[d] for d in order])


def broadcast(writer: RecipeWriter, ins: Instruction) -> None:
    """Move with zero strides."""
    (operand,), mapping = ins.operands, ins.attrs["dimensions"]
    strides = [0] * len(ins.shape.dims)
    for d, stride in zip(mapping, _strides(operand.shape), strict=True):
        strides[d] = stride
    _move_all(writer, ins, operand, strides)


def reverse(writer: RecipeWriter, ins: Instruction) -> None:
    """Move with negative strides."""
    (operand,), reversed_dims = ins.operands, ins.attrs["dimensions"]
    strides, first = _strides(operand.shape), 0
    for d in reversed_dims:
        first += (operand.shape.dims[d] - 1) * strides[d]
        strides[d] = -strides[d]
    _move_all(writer, ins, operand, strides, first)


def slice_(writer: RecipeWriter, ins: Instruction) -> None:
    """Move with an offset and larger strides."""
    (operand,), ranges = ins.operands, ins.attrs["slice"]
    strides = _strides(operand.shape)
    first = sum(r.start * s for r, s in zip(ranges, strides, strict=True))
    _move_all(writer, ins, operand, [r.stride * s for r, s in zip(ranges, strides, strict=True)], first)


def concatenate(writer: RecipeWriter, ins: Instruction) -> None:
    """Move each operand."""
    (axis,), strides = ins.attrs["dimensions"], _strides(ins.shape)
    buffer, start = writer.buffers.allocate(ins), 0
    for operand in ins.operands:
        move(writer, (writer.buffers.of(operand), buffer), ins.shape.dtype.itemsize, operand.shape.dims,
             read_strides_of(writer.survey, operand), strides, 0, start * strides[axis])  # fmt: skip
        start += operand.shape.dims[axis]


def pad(writer: RecipeWriter, ins: Instruction) -> None:
    """Fill with the padding value, then move the operand."""
    operand, value = ins.operands
    buffer, size, strides = writer.buffers.allocate(ins), ins.shape.dtype.itemsize, _strides(ins.shape)
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
    move(writer, buffers, leaf.shape.dtype.itemsize, dims, read_strides_of(writer.survey, leaf), strides_of(dims))


def move(
    writer: RecipeWriter, buffers: Sequence[int], size: int, dims: Sequence[int],
    read_strides: Sequence[int], write_strides: Sequence[int], read_start: int = 0, write_start: int = 0,
) -> None:  # fmt: skip
    """Write the step that moves elements of a size between two buffers."""
    if 0 in dims:
        return
    loops = _merge_loops(dims, read_strides, write_strides)
    if loops == [(prod(dims), 1, 1)] and not read_start and not write_start:
        writer.copy(buffers[0], buffers[1], prod(dims) * size)
        return
    if len(loops) > MAX_RANK:
        raise NotCoveredError(f"a move of {len(loops)} dimensions")
    function = writer.function(f"move_{size}")
    ns = prod(dims) * (0.5 + size * BYTE_NS)
    tasks = cost.tasks(ns, loops[0][0])
    numbers = [read_start, write_start, len(loops), tasks, *(n for loop in loops for n in loop)]
    writer.call(function, tasks, buffers, numbers, ns)


def read_strides_of(survey: Survey, operand: Instruction) -> list[int]:
    """Return the strides at which the elements of an operand are read."""
    return [0] * len(operand.shape.dims) if operand in survey.uniform else _strides(operand.shape)


def _move_all(
    writer: RecipeWriter, ins: Instruction, operand: Instruction, strides: Sequence[int], read_start: int = 0
) -> None:
    buffers = (writer.buffers.of(operand), writer.buffers.allocate(ins))
    move(writer, buffers, ins.shape.dtype.itemsize, ins.shape.dims, strides, _strides(ins.shape), read_start)


def _strides(shape: Shape) -> list[int]:
    return strides_of(shape.dims)


def strides_of(dims: Sequence[int]) -> list[int]:
    """Return the strides, in elements, of a row-major array."""
    strides, step = [], 1
    for n in reversed(dims):
        strides.append(step)
        step *= n
    return strides[::-1]


def _merge_loops(
    dims: Sequence[int], read_strides: Sequence[int], write_strides: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Return loops as (length, read stride, write stride), with unit loops removed and contiguous ones merged."""
    loops = [loop for loop in zip(dims, read_strides, write_strides, strict=True) if loop[0] > 1] or [(1, 1, 1)]
    merged = loops[:1]
    for _, (n, read_stride, write_stride) in pairwise(loops):
        m, outer_read, outer_write = merged[-1]
        if outer_read == n * read_stride and outer_write == n * write_stride:
            merged[-1] = (m * n, read_stride, write_stride)
        else:
            merged.append((n, read_stride, write_stride))
    return merged
