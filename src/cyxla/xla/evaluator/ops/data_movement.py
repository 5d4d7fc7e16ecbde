"""Opcodes that create arrays or move elements.

At run time, an array with dynamic dimensions is a NumPy array of its present sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from cyxla.errors import ShapeError
from cyxla.types import UNBOUNDED, ElementType, Shape
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.numerics.conversion import bitcast_array, convert_array
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import Array, Value, Written, array_of, fits, whole_of, zero_extended
from cyxla.xla.hlo.attributes import PaddingDim
from cyxla.xla.hlo.growth import is_grown, may_grow
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.reshape_groups import ReshapeGroup, dynamic_result, reshape_groups


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
    return _reshaped(ins, x)


def _reshaped(ins: Instruction, x: Array) -> Array:
    """Return an array of the present sizes in the shape of an instruction."""
    operand = ins.operands[0].shape
    if x.size == ins.shape.size and (x.size or x.shape == tuple(operand.dims)):
        return x.reshape(ins.shape.dims)
    if UNBOUNDED in (*operand.dims, *ins.shape.dims):
        groups = [ReshapeGroup(tuple(range(x.ndim)), tuple(range(ins.shape.rank)))]
    else:
        groups = reshape_groups(operand.dims, ins.shape.dims)
    sizes = [n for group in groups for n in _present_sizes(ins, x, group)]
    kept = [prod(sizes[d] for d in group.result) for group in groups]  # a size is rounded down
    return x.reshape([prod(x.shape[d] for d in g.operand) for g in groups])[tuple(map(slice, kept))].reshape(sizes)


def _present_sizes(ins: Instruction, x: Array, group: ReshapeGroup) -> list[int]:
    """Return the present sizes of a group of dimensions of a reshape's result."""
    sizes = {d: ins.shape.dims[d] for d in group.result}
    dynamic = [d for d in group.result if ins.shape.dynamic[d]]
    remaining = prod(x.shape[d] for d in group.operand)
    if remaining == prod(sizes.values()):
        return list(sizes.values())
    if not dynamic:
        raise ShapeError(f"{remaining} present elements cannot become {ins.shape}", where=repr(ins))
    if UNBOUNDED not in (*ins.operands[0].shape.dims, *ins.shape.dims):
        only = dynamic_result(group, ins.shape, ins.attrs.get("inferred_dimension"))
        assert only is not None
        others = prod(n for d, n in sizes.items() if d != only)
        return list({**sizes, only: remaining // max(others, 1)}.values())
    remaining //= max(prod(n for d, n in sizes.items() if d not in dynamic), 1)
    for d in dynamic[:-1]:  # all but the last keep the operand's size of the same bound, if there is one
        present = (x.shape[k] for k in group.operand)
        sizes[d] = next((n for n in present if n <= sizes[d] and remaining % max(n, 1) == 0), sizes[d])
        remaining //= max(sizes[d], 1)
    sizes[dynamic[-1]] = remaining
    return list(sizes.values())


@evaluates("dynamic-reshape")
def dynamic_reshape(ev: Evaluation, ins: Instruction, x: Array, *sizes: Array) -> Array:
    """Reshape to sizes that are operands; of more elements than these hold, the first are taken."""
    new_sizes = tuple(int(n) for n in sizes)
    count, is_bounded = prod(new_sizes), UNBOUNDED not in (*ins.operands[0].shape.dims, *ins.shape.dims)
    holds = count <= x.size if is_bounded else count == x.size
    if min(new_sizes, default=0) < 0 or not holds or not fits(new_sizes, ins.shape):
        raise ShapeError(f"dynamic-reshape of {x.size} elements to {list(new_sizes)} of {ins.shape}", where=repr(ins))
    return x.reshape(-1)[:count].reshape(new_sizes)


@evaluates("bitcast")
def bitcast(ev: Evaluation, ins: Instruction, x: Array) -> Array:
    """Reinterpret the operand's memory, which is in the layout of the operand, in the result's layout."""
    source, target = ins.operands[0].shape, ins.shape
    if source.is_dynamic and _keeps_order(source, target):
        bits: Array = bitcast_array(x, target.dtype)
        return _reshaped(ins, bits)
    memory = x.transpose(source.minor_to_major[::-1]).reshape(-1)
    if source.dtype is not target.dtype:
        memory = _reinterpret(memory, target.dtype)
    order = target.minor_to_major[::-1]
    return memory.reshape([target.dims[d] for d in order]).transpose(np.argsort(order) if order else ())


def _keeps_order(source: Shape, target: Shape) -> bool:
    """Return True if both layouts are row-major, and elements keep their width."""
    orders = (s.minor_to_major == tuple(range(s.rank))[::-1] for s in (source, target))
    return all(orders) and source.dtype.bits == target.dtype.bits


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
    ranges, full = ins.attrs["slice"], ins.operands[0].shape.dims
    whole = [d for d, c in enumerate(ranges) if _is_whole(ins, d) and tuple(c) == (0, full[d], 1)]
    x = _extend_parts(ins, x, whole)
    return x[tuple(slice(*((None,) if d in whole else c)) for d, c in enumerate(ranges))]


def _is_whole(ins: Instruction, d: int) -> bool:
    """Return True if a dimension of the result has all elements that the operand's has, however many these are."""
    operand = ins.operands[0].shape
    return operand.dynamic[d] and ins.shape.dynamic[d] and ins.shape.dims[d] == operand.dims[d]


def _extend_parts(ins: Instruction, x: Array, whole: Sequence[int]) -> Array:
    """Extend dimensions of which parts are taken by zeros up to their bounds."""
    shape = ins.operands[0].shape
    return zero_extended(x, [d for d, n in enumerate(shape.dims) if d not in whole and n != UNBOUNDED], shape)


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
    """Concatenate along one dimension; the others have the least of the present sizes."""
    along = int(ins.attrs["dimensions"][0])
    if any(o.shape.is_dynamic for o in ins.operands):
        least = [min(n) for n in zip(*(x.shape for x in parts), strict=True)]
        common = tuple(slice(None if d == along else n) for d, n in enumerate(least))
        parts = tuple(x[common] for x in parts)
    return np.concatenate(parts, axis=along)


@evaluates("dynamic-slice")
def dynamic_slice(ev: Evaluation, ins: Instruction, x: Array, *starts: Array) -> Array:
    """Take a block at a start index that is clamped so that the block fits."""
    sizes, whole = ins.attrs["dynamic_slice_sizes"], [d for d in range(x.ndim) if _is_whole(ins, d)]
    x = _extend_parts(ins, x, whole)
    return x[_block(x.shape, [x.shape[d] if d in whole else n for d, n in enumerate(sizes)], starts)]


@evaluates("dynamic-update-slice")
def dynamic_update_slice(ev: Evaluation, ins: Instruction, x: Array, update: Array, *starts: Array) -> Array:
    """Replace a block at a start index that is clamped so that the block fits, by their bounds."""
    operand, block = ins.operands[0].shape, ins.operands[1].shape
    if not (operand.is_dynamic or block.is_dynamic) or UNBOUNDED in (*operand.dims, *block.dims):
        result = x.copy()
        result[_block(x.shape, update.shape, starts)] = update
        return result
    result = np.array(_whole(ins, x))
    at = _block(operand.dims, block.dims, starts)
    result[tuple(slice(s.start, s.start + n) for s, n in zip(at, update.shape, strict=True))] = update
    return Written.of(result, x.shape) if is_grown(ins) else result[tuple(map(slice, x.shape))]


def _whole(ins: Instruction, x: Array) -> Array:
    """Return an array of the bounds, with zeros beyond the present sizes but for what was written there."""
    known = whole_of(x) if may_grow(ins) else None
    return zero_extended(x, range(x.ndim), ins.operands[0].shape) if known is None else known


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
    new_size, bound = max(0, int(array_of(size))), ins.shape.dims[along]
    if bound != UNBOUNDED:
        new_size = min(new_size, bound)
    if not ins.shape.dynamic[along] and new_size != bound:
        raise ShapeError(f"set-dimension-size to {new_size}, but the result is stated as {ins.shape}", where=repr(ins))
    known = whole_of(array) if may_grow(ins) else None
    if known is not None:
        whole = known[tuple(slice(new_size) if d == along else slice(None) for d in range(array.ndim))]
        sizes = [new_size if d == along else n for d, n in enumerate(array.shape)]
        return Written.of(zero_extended(whole, [along], ins.shape), sizes)
    growth = new_size - array.shape[along]
    if growth > 0:
        padding = [PaddingDim(0, growth if d == along else 0) for d in range(array.ndim)]
        return pad_array(array, np.zeros((), array.dtype), padding)
    return array[tuple(slice(new_size) if d == along else slice(None) for d in range(array.ndim))]
