"""Opcodes that create arrays or move elements.

At run time, an array with dynamic dimensions is a NumPy array of its present sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cyxla.errors import ShapeError
from cyxla.types import ElementType, Shape
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.numerics.conversion import bitcast_array, convert_array
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import Array, Value, array_of
from cyxla.xla.hlo.attributes import PaddingDim
from cyxla.xla.hlo.instruction import Instruction


@evaluates("iota")
def iota(ev: Evaluation, ins: Instruction) -> Array:
    """Count along one dimension; each number is converted from the index."""
    dims, along = ins.shape.dims, int(ins.attrs["iota_dimension"])
    line = convert_array(np.arange(dims[along]), ins.shape.dtype)
    return np.broadcast_to(line.reshape([-1 if d == along else 1 for d in range(len(dims))]), dims)


@evaluates("broadcast")
def broadcast(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Map operand dimension i to result dimension ``dimensions[i]``, and repeat along the others."""
    dimensions = ins.attrs["dimensions"]
    if x.ndim > len(dimensions):  # in a vectorised computation of scalars, x has the shape of the batch
        return x
    order = sorted(range(len(dimensions)), key=lambda i: dimensions[i])
    sizes = list(ins.shape.dims)
    for i, d in enumerate(dimensions):
        sizes[d] = x.shape[i]
    expanded = [sizes[d] if d in dimensions else 1 for d in range(len(sizes))]
    return np.broadcast_to(x.transpose(order).reshape(expanded), sizes)


@evaluates("reshape")
def reshape(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Change the sizes; elements keep their row-major order."""
    if not ins.shape.rank and not ins.operands[0].shape.rank:
        return x  # in a vectorised computation of scalars
    return x.reshape(_present_sizes(ins.shape, x))


def _present_sizes(shape: Shape, x: Array) -> tuple[int, ...]:
    """Return the present sizes of a reshape's result; dynamic dimensions shrink with the operand."""
    if x.size == shape.size or not shape.is_dynamic:
        return shape.dims
    dynamic = [d for d, is_dynamic in enumerate(shape.dynamic) if is_dynamic]
    fixed = int(np.prod([n for d, n in enumerate(shape.dims) if d not in dynamic], dtype=np.int64))
    sizes, remaining = list(shape.dims), x.size // fixed if fixed else 0
    for d in dynamic[:-1]:  # all but the last keep the operand's size of the same bound, if there is one
        sizes[d] = next((n for n in x.shape if n <= sizes[d] and remaining % max(n, 1) == 0), sizes[d])
        remaining //= max(sizes[d], 1)
    sizes[dynamic[-1]] = remaining
    return tuple(sizes)


@evaluates("dynamic-reshape")
def dynamic_reshape(ev: Evaluation, ins: Instruction, x: Array, *sizes: Array) -> Array:
    """Reshape to sizes that are operands."""
    new_sizes = [int(n) for n in sizes]
    if int(np.prod(new_sizes, dtype=np.int64)) != x.size:
        raise ShapeError(f"dynamic-reshape of {x.size} elements to {new_sizes}", where=repr(ins))
    return x.reshape(new_sizes)


@evaluates("bitcast")
def bitcast(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Reinterpret the operand's memory, which is in the layout of the operand, in the result's layout."""
    source, target = ins.operands[0].shape, ins.shape
    memory = x.transpose(source.minor_to_major[::-1]).reshape(-1)
    if source.dtype is not target.dtype:
        memory = _reinterpret(memory, target.dtype)
    order = target.minor_to_major[::-1]
    return memory.reshape([target.dims[d] for d in order]).transpose(np.argsort(order) if order else ())


def _reinterpret(memory: Array, target: ElementType) -> Array:
    width = target.itemsize // memory.dtype.itemsize
    return bitcast_array(memory.reshape(-1, width) if width > 1 else memory, target).reshape(-1)


@evaluates("transpose")
def transpose(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Map operand dimension ``dimensions[i]`` to result dimension i."""
    return x.transpose(ins.attrs["dimensions"])


@evaluates("reverse")
def reverse(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Reverse the order along some dimensions."""
    return np.flip(x, tuple(ins.attrs["dimensions"]))


@evaluates("slice")
def slice_(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Take elements start, start + stride, .. below limit in each dimension."""
    ranges = zip(ins.attrs["slice"], ins.operands[0].shape.dims, strict=True)
    return x[tuple(slice(c.start, None if c.limit == full else c.limit, c.stride) for c, full in ranges)]


@evaluates("pad")
def pad(ev: Evaluation, ins: Instruction, x: Array, value: Array) -> Array:
    """Pad with interior elements, then add to, or remove from, both ends."""
    return pad_array(x, value, ins.attrs["padding"])


def pad_array(x: Array, value: Array, padding: Sequence[PaddingDim]) -> Array:
    """Pad as `pad`: interior elements first, then the edges; negative edges remove elements."""
    interior_sizes = [n + max(n - 1, 0) * p.interior for n, p in zip(x.shape, padding, strict=True)]
    sizes = [max(n + p.low + p.high, 0) for n, p in zip(interior_sizes, padding, strict=True)]
    result = np.full(sizes, value, x.dtype)
    target_index, source_index = [], []
    for n, size, p in zip(x.shape, sizes, padding, strict=True):
        step = p.interior + 1
        first = max(0, -(p.low // step))  # the first element with an index of at least 0
        last = min(n - 1, (size - 1 - p.low) // step)
        count = max(0, last - first + 1)
        at = p.low + first * step
        target_index.append(slice(at, at + (count - 1) * step + 1, step) if count else slice(0, 0))
        source_index.append(slice(first, first + count))
    result[tuple(target_index)] = x[tuple(source_index)]
    return result


@evaluates("concatenate")
def concatenate(ev: Evaluation, ins: Instruction, *parts: Array) -> Array:
    """Concatenate along one dimension."""
    return np.concatenate(parts, axis=int(ins.attrs["dimensions"][0]))


@evaluates("dynamic-slice")
def dynamic_slice(ev: Evaluation, ins: Instruction, x: Array, *starts: Array) -> Array:
    """Take a block at a start index that is clamped so that the block fits."""
    sizes = ins.attrs["dynamic_slice_sizes"]
    return x[_block(x.shape, sizes, starts)]


@evaluates("dynamic-update-slice")
def dynamic_update_slice(ev: Evaluation, ins: Instruction, x: Array, update: Array, *starts: Array) -> Array:
    """Replace a block at a start index that is clamped so that the block fits."""
    result = x.copy()
    result[_block(x.shape, update.shape, starts)] = update
    return result


def _block(dims: Sequence[int], sizes: Sequence[int], starts: Sequence[Array]) -> tuple[slice, ...]:
    indices = [int(i) for i in (starts[0] if len(starts) == 1 and starts[0].ndim else starts)]
    clamped = [max(0, min(at, n - size)) for at, n, size in zip(indices, dims, sizes, strict=True)]
    return tuple(slice(at, at + size) for at, size in zip(clamped, sizes, strict=True))


@evaluates("get-dimension-size")
def get_dimension_size(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Return the present size of one dimension."""
    return np.array(x.shape[ins.attrs["dimensions"][0]], np.int32)


@evaluates("set-dimension-size")
def set_dimension_size(ev: Evaluation, ins: Instruction, x: Value, size: Value) -> Array:
    """Shrink a dimension to a size, or grow it towards its bound with zeros."""
    array, along = array_of(x), int(ins.attrs["dimensions"][0])
    new_size = max(0, min(int(array_of(size)), ins.shape.dims[along]))
    growth = new_size - array.shape[along]
    if growth > 0:
        padding = [PaddingDim(0, growth if d == along else 0) for d in range(array.ndim)]
        return pad_array(array, np.zeros((), array.dtype), padding)
    return array[tuple(slice(new_size) if d == along else slice(None) for d in range(array.ndim))]
