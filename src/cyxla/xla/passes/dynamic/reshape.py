"""Reshapes: the present elements of a group of dimensions keep their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.reshape_groups import ReshapeGroup, dynamic_result, reshape_groups
from cyxla.xla.passes.dynamic.packing import Bounded, Value, dynamic_dims
from cyxla.xla.passes.dynamic.padder import Padder, Sizes, pads, refuse

_MAX_S32 = 2**31 - 1


@pads("reshape")
def reshape(pad: Padder, ins: Instruction, operand: Value) -> Value:
    """Reshape each group of dimensions on its own."""
    x, sizes = pad.array(operand), {}
    groups = reshape_groups(x.padded.shape.dims, ins.shape.dims)
    for group in groups:
        if any(d in x.sizes for d in group.operand):
            d, size = _group_size(pad, ins, x, group)
            sizes[d] = size
    return Bounded(_moved(pad, ins, x, groups, sizes), sizes)


@pads("bitcast")
def bitcast(pad: Padder, ins: Instruction, operand: Value) -> Value:
    """Reshape, where elements keep their width and both layouts are row-major."""
    x = pad.array(operand)
    before, after = ins.operands[0].shape, ins.shape
    if not (_is_row_major(before) and _is_row_major(after) and before.dtype.bits == after.dtype.bits):
        refuse(ins, "its elements change their order or their number")
    bits = x.padded
    if before.dtype is not after.dtype:
        bits = pad.op("bitcast-convert", bits, shape=bits.shape.logical.with_dtype(after.dtype))
    return reshape(pad, ins, Bounded(bits, x.sizes))


def _is_row_major(shape: Shape) -> bool:
    return shape.minor_to_major == tuple(range(shape.rank))[::-1]


@pads("dynamic-reshape")
def dynamic_reshape(pad: Padder, ins: Instruction, operand: Value, *sizes: Value) -> Value:
    """Reshape all dimensions to sizes that are operands."""
    x, dims = pad.array(operand), ins.shape.dims
    group = ReshapeGroup(tuple(range(x.padded.shape.rank)), tuple(range(len(dims))))
    present = {d: pad.clamped(pad.anchor(sizes[d]), dims[d]) for d in dynamic_dims(ins.shape)}
    return Bounded(_moved(pad, ins, x, [group], present), present)


def _group_size(pad: Padder, ins: Instruction, x: Bounded, group: ReshapeGroup) -> tuple[int, Instruction]:
    """Return the dynamic dimension of a group in the result, and its size."""
    only = dynamic_result(group, ins.shape, ins.attrs.get("inferred_dimension"))
    if only is None:
        of_operand, of_result = (", ".join(map(str, dims)) or "none" for dims in group)
        refuse(ins, f"dimensions {of_operand} of the operand become {of_result}, no dynamic dimension among them")
    if prod(x.padded.shape.dims[d] for d in group.operand) > _MAX_S32:
        refuse(ins, "its elements cannot be counted in s32")
    total = pad.number(prod(x.padded.shape.dims[d] for d in group.operand if d not in x.sizes))
    for d in group.operand:
        if d in x.sizes:
            total = pad.integer("multiply", total, x.sizes[d])
    fixed = prod(ins.shape.dims[d] for d in group.result if d != only)
    return only, total if fixed in (0, 1) else pad.integer("divide", total, fixed)


def _moved(
    pad: Padder, ins: Instruction, x: Bounded, groups: Sequence[ReshapeGroup], sizes: Mapping[int, Instruction]
) -> Instruction:
    """Return the padded result."""
    before, after = x.padded.shape.dims, ins.shape.dims
    target = ins.shape.static
    moving = [g for g in groups if not (_is_prefix(g.operand, before, x.sizes) and _is_prefix(g.result, after, sizes))]
    if not moving or not target.size:
        return pad.op("reshape", x.padded, shape=target)
    flat = pad.reshape(x.padded, [prod(before[d] for d in g.operand) for g in groups])
    for axis, group in enumerate(groups):
        if group in moving:
            flat = _take(pad, flat, axis, _Order(pad, flat.shape.dims[axis]).indices(group, x, target, sizes))
    return pad.reshape(flat, after)


def _is_prefix(dims: Sequence[int], bounds: Sequence[int], sizes: Mapping[int, Any]) -> bool:
    """Return True if the present elements of some dimensions are the first of all."""
    wide = [d for d in dims if bounds[d] != 1]
    return not any(d in sizes for d in wide[1:])


class _Order:
    """Arithmetic on indices of the padded elements of a group."""

    def __init__(self, pad: Padder, count: int) -> None:
        self.pad = pad
        self.dtype = ElementType.S32 if count <= _MAX_S32 else ElementType.S64
        self.shape = Shape.array(self.dtype, (count,))

    def indices(self, group: ReshapeGroup, x: Bounded, target: Shape, sizes: Mapping[int, Instruction]) -> Instruction:
        """Return, for each padded element of the result, the index of the operand's padded element."""
        place = self.pad.iota(self.shape, 0)
        parts = self._split(place, [self._number(target.dims[d]) for d in group.result])
        present = [self._size(d, sizes, target.dims) for d in group.result]
        number = self._join(parts, present)
        bounds = x.padded.shape.dims
        parts = self._split(number, [self._size(d, x.sizes, bounds) for d in group.operand])
        return self._join(parts, [self._number(bounds[d]) for d in group.operand])

    def _number(self, value: int) -> Instruction:
        return self.pad.full(value, self.shape)

    def _size(self, d: int, sizes: Sizes | Mapping[int, Instruction], bounds: Sequence[int]) -> Instruction:
        if d not in sizes:
            return self._number(bounds[d])
        positive = self.pad.integer("maximum", sizes[d], 1)  # indices of an empty array are never used
        return self.pad.broadcast(self.pad.convert(positive, self.dtype), self.shape)

    def _split(self, number: Instruction, sizes: Sequence[Instruction]) -> list[Instruction]:
        """Return the row-major index of each element number."""
        parts: list[Instruction] = []
        for size in reversed(sizes[1:]):
            parts.append(self.pad.op("remainder", number, size))
            number = self.pad.op("divide", number, size)
        return [number, *reversed(parts)] if sizes else []

    def _join(self, parts: Sequence[Instruction], sizes: Sequence[Instruction]) -> Instruction:
        """Return the element number of each row-major index."""
        number = self._number(0)
        for part, size in zip(parts, sizes, strict=True):
            number = self.pad.op("add", self.pad.op("multiply", number, size), part)
        return number


def _take(pad: Padder, x: Instruction, axis: int, indices: Instruction) -> Instruction:
    """Take elements along one dimension."""
    return pad.op(
        "gather",
        x,
        indices,
        offset_dims=tuple(d for d in range(x.shape.rank) if d != axis),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        index_vector_dim=1,
        slice_sizes=tuple(1 if d == axis else n for d, n in enumerate(x.shape.dims)),
    )
