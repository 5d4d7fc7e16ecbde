"""Reductions, windows and scans: elements beyond the sizes take no part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.hlo.attributes import WindowDim
from cyxla.xla.hlo.combiners import combiner, identity, starts_from_identity
from cyxla.xla.passes.dynamic.packing import Bounded, Value
from cyxla.xla.passes.dynamic.padder import Padder, Sizes, moved, pads
from cyxla.xla.passes.engine.clone import copy_body

_ONE_ELEMENT = WindowDim(1)
_PRED = Shape.array(ElementType.PRED)


@pads("reduce")
def reduce(pad: Padder, ins: Instruction, *operands: Value) -> Value:
    """Reduce the present elements."""
    arrays, inits, sizes = _inputs(pad, operands)
    reduced = ins.attrs["dimensions"]
    kept = [d for d in range(arrays[0].padded.shape.rank) if d not in reduced]
    masked = [d for d in reduced if d in sizes]
    return _combine(pad, ins, arrays, inits, (sizes, masked), moved(sizes, kept))


@pads("reduce-window")
def reduce_window(pad: Padder, ins: Instruction, *operands: Value) -> Value:
    """Reduce the present elements of each window; the sizes follow from the number of positions."""
    arrays, inits, sizes = _inputs(pad, operands)
    window = ins.attrs["window"]
    masked = [d for d in sizes if window and window[d] != _ONE_ELEMENT]
    counts = {d: pad.window_count(n, window[d]) if window else n for d, n in sizes.items()}
    return _combine(pad, ins, arrays, inits, (sizes, masked), counts)


def _inputs(pad: Padder, operands: Sequence[Value]) -> tuple[list[Bounded], list[Instruction], Sizes]:
    half = len(operands) // 2
    arrays = [pad.array(o) for o in operands[:half]]
    return arrays, [pad.anchor(o) for o in operands[half:]], pad.common_sizes(arrays)


def _combine(
    pad: Padder,
    ins: Instruction,
    arrays: Sequence[Bounded],
    inits: Sequence[Instruction],
    masks: tuple[Sizes, Sequence[int]],
    sizes: Sizes,
) -> Value:
    """Combine with identities in place of elements beyond the sizes of some dimensions, or with a mask as operand."""
    present, dims = masks
    unit = _identity(pad, ins, inits[0]) if len(arrays) == 1 and dims else None
    if unit is not None:
        padded = [pad.masked(Bounded(arrays[0].padded, present), dims, unit)]
    else:
        padded = [x.padded for x in arrays]
    if unit is None and dims:
        results = _combine_present(pad, ins, padded, inits, mask(pad, padded[0].shape, present, dims))
    else:
        combined = pad.copy(ins, [*padded, *inits])
        results = pad.elements(combined) if ins.shape.is_tuple else (combined,)
    bounded = tuple([Bounded(pad.anchor(r), sizes) for r in results])
    return bounded if ins.shape.is_tuple else bounded[0]


def _identity(pad: Padder, ins: Instruction, init: Instruction) -> Instruction | None:
    """Return the identity element of a combiner that has one."""
    opcode, dtype = combiner(ins.called[0]), init.shape.dtype
    if opcode is None or dtype is not ins.operands[0].shape.dtype:
        return None
    if starts_from_identity(opcode, init):
        return init
    value = identity(opcode, dtype)
    if value is None:
        return None
    if opcode == "add" and (dtype.is_float or dtype.is_complex):
        value = complex(-0.0, -0.0) if dtype.is_complex else -0.0  # which keeps a sum of negative zeros
    return pad.constant(value, dtype)


def mask(pad: Padder, shape: Shape, sizes: Sizes, dims: Sequence[int]) -> Instruction:
    """Return the mask of the elements that are inside the sizes of some dimensions."""
    inside = [pad.inside(shape, d, sizes[d]) for d in dims]
    mask = inside[0]
    for other in inside[1:]:
        mask = pad.op("and", mask, other)
    return mask


def _combine_present(
    pad: Padder, ins: Instruction, padded: Sequence[Instruction], inits: Sequence[Instruction], mask: Instruction
) -> tuple[Value, ...]:
    """Combine arrays and a mask; elements outside it are combined as if they were identities."""
    function = present_combiner(pad, ins.called[0], [*inits, *padded])
    shapes = [*ins.shape.static.leaves(), *[ins.shape.static.leaves()[0].with_dtype(ElementType.PRED)]]
    attrs: dict[str, Any] = dict(ins.attrs)
    both = pad.computation.add(
        ins.opcode,
        (*padded, mask, *inits, pad.constant(True, ElementType.PRED)),
        attrs,
        shape=Shape.tuple(shapes),
        called=(function,),
    )
    return pad.elements(both)[:-1]


def present_combiner(pad: Padder, combine: Computation, values: Sequence[Instruction]) -> Computation:
    """Return a computation of accumulators and elements, each with a flag that is False for an identity."""
    half = len(values) // 2
    scalars = [Shape.array(v.shape.dtype) for v in values]
    shapes = [*scalars[:half], _PRED, *scalars[half:], _PRED]

    def body(c: Computation) -> Instruction:
        parts = [c.add("parameter", (), {"parameter_number": n}, shape=s) for n, s in enumerate(shapes)]
        old, had, new, has = parts[:half], parts[half], parts[half + 1 : -1], parts[-1]
        root = copy_body(combine, c, [*old, *new])
        both = list(root.operands) if root.opcode == "tuple" else [root]
        results = []
        for x, y, z in zip(old, new, both, strict=True):
            result = c.add("select", (had, z, c.add("convert", (y,), shape=z.shape)), shape=z.shape)
            kept = c.add("convert", (x,), shape=z.shape)
            results.append(c.add("select", (has, result, kept), shape=z.shape))
        results.append(c.add("or", (had, has), shape=_PRED))
        return c.add("tuple", results, shape=Shape.tuple([r.shape for r in results]))

    return pad.function(f"present_{combine.name}", body)
