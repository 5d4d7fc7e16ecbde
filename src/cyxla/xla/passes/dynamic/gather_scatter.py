"""gather and scatter: indices are clamped to, or compared with, the bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.combiners import combiner, identity
from cyxla.xla.passes.dynamic.packing import Bounded, Value
from cyxla.xla.passes.dynamic.padder import Padder, Sizes, pads, refuse
from cyxla.xla.passes.dynamic.reductions import mask, present_combiner


@pads("gather")
def gather(pad: Padder, ins: Instruction, operand: Value, indices: Value) -> Value:
    """Gather slices from the array with zeros beyond its sizes; slices of whole dimensions keep the size."""
    x, index, a = pad.array(operand), pad.array(indices), ins.attrs
    _check_vector(ins, index, a["index_vector_dim"])
    bounds, offset_dims = x.padded.shape.dims, a["offset_dims"]
    window = [d for d in range(len(bounds)) if d not in (*a["collapsed_slice_dims"], *a["operand_batching_dims"])]
    whole = {d: o for d, o in zip(window, offset_dims, strict=True) if _is_whole(ins, d, o, bounds)}
    x = pad.zero_extended(x, [d for d in range(len(bounds)) if d not in whole])
    batch = [d for d in range(ins.shape.rank) if d not in offset_dims]
    of_index = [d for d in range(index.padded.shape.rank) if d != a["index_vector_dim"]]
    sizes = {b: index.sizes[d] for b, d in zip(batch, of_index, strict=True) if d in index.sizes}
    sizes |= {o: x.sizes[d] for d, o in whole.items() if d in x.sizes}
    return Bounded(pad.copy(ins, [x.padded, index.padded]), sizes)


def _is_whole(ins: Instruction, d: int, of_result: int, bounds: Sequence[int]) -> bool:
    return ins.attrs["slice_sizes"][d] == bounds[d] and ins.shape.dynamic[of_result]


def _check_vector(ins: Instruction, index: Bounded, vector_dim: int) -> None:
    if vector_dim in index.sizes:
        refuse(ins, "index vectors have a dynamic size")


@pads("scatter")
def scatter(pad: Padder, ins: Instruction, *operands: Value) -> Value:
    """Scatter updates; those beyond the sizes have indices out of bounds."""
    n = len(operands) // 2
    arrays, index = [pad.array(o) for o in operands[:n]], pad.array(operands[n])
    updates = [pad.array(o) for o in operands[n + 1 :]]
    _check_vector(ins, index, ins.attrs["index_vector_dim"])
    sizes, present = pad.common_sizes(arrays), pad.common_sizes(updates)
    window = ins.attrs["update_window_dims"]
    batch = [d for d in range(updates[0].padded.shape.rank) if d not in window]
    at = _present_indices(pad, ins, index, {k: present[d] for k, d in enumerate(batch) if d in present})
    inside = [d for d in window if d in present]
    unit = _identity(ins, updates[0]) if n == 1 else None
    targets, values = [x.padded for x in arrays], [u.padded for u in updates]
    if inside and unit is None:
        results = _scatter_present(pad, ins, targets, at, values, mask(pad, values[0].shape, present, inside))
    else:
        if inside:
            values = [pad.masked(Bounded(values[0], present), inside, pad.constant(unit, values[0].shape.dtype))]
        scattered = pad.copy(ins, [*targets, at, *values])
        results = pad.elements(scattered) if ins.shape.is_tuple else (scattered,)
    bounded = tuple([Bounded(pad.anchor(r), sizes) for r in results])
    return bounded if ins.shape.is_tuple else bounded[0]


def _scatter_present(
    pad: Padder,
    ins: Instruction,
    targets: Sequence[Instruction],
    at: Instruction,
    values: Sequence[Instruction],
    present: Instruction,
) -> tuple[Value, ...]:
    """Scatter a mask beside the updates; elements outside it change nothing."""
    function = present_combiner(pad, ins.called[0], [*targets, *values])
    every = pad.full(True, targets[0].shape.static.with_dtype(ElementType.PRED))
    shapes = [t.shape.static for t in (*targets, every)]
    operands = (*targets, every, at, *values, present)
    both = pad.computation.add("scatter", operands, ins.attrs, shape=Shape.tuple(shapes), called=(function,))
    return pad.elements(both)[:-1]


def _present_indices(pad: Padder, ins: Instruction, index: Bounded, of_updates: Sizes) -> Instruction:
    """Return the indices with -1, which is out of bounds, beyond their sizes and those of the updates."""
    vector_dim, shape = ins.attrs["index_vector_dim"], index.padded.shape
    dims = [d for d in range(shape.rank) if d != vector_dim]
    updates = Bounded(index.padded, {dims[k]: size for k, size in of_updates.items()})
    sizes = pad.common_sizes([index, updates])
    if not sizes:
        return index.padded
    if not ins.attrs["scatter_dims_to_operand_dims"]:
        refuse(ins, "updates of dynamic number have no indices")
    signed = pad.convert(index.padded, ElementType.S64) if not shape.dtype.is_signed else index.padded
    return pad.masked(Bounded(signed, sizes), tuple(sizes), pad.constant(-1, signed.shape.dtype))


def _identity(ins: Instruction, update: Bounded) -> Any:
    """Return the identity element of a combiner that has one."""
    opcode, dtype = combiner(ins.called[0]), update.padded.shape.dtype
    if opcode == "add" and dtype.is_float:
        return -0.0  # which keeps a negative zero
    return identity(opcode, dtype) if opcode is not None else None
