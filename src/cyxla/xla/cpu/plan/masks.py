"""Masks of live elements, and the arrays that are constant beyond a size known at run time.

A mask is a comparison of indices with a size, or the conjunction of several. An array that it selects from has an
element of its own up to the size, and a filler from there on::

    select(compare(iota(d) < broadcast(size)), x, filler)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from cyxla.types import ElementType
from cyxla.xla.cpu.kernel.groups import Live
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import CONTROL_FLOW, FORWARDING, constant_of, resolve
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.hlo.combiners import IDEMPOTENT, combiner, identity

_ALL: Live = {}  # every element matters
_MAX_FILL_DEPTH = 3  # operations between a mask and a reduction that knows its filler
#: Types of sizes.
SIZE_TYPES = frozenset({ElementType.S32, ElementType.S64, ElementType.U32})


# ---------------------------------------------------------------------------------------------------------------- masks
def has_sizes(computation: Computation) -> bool:
    """Return whether some comparison of a computation, or of a loop or branch in it, is a mask of live elements."""
    return any(_has_size(ins) for ins in computation.instructions)


def _has_size(ins: Instruction) -> bool:
    if ins.opcode in CONTROL_FLOW:
        return any(map(has_sizes, ins.called))
    return ins.opcode == "compare" and bool(_compared(ins))


def mask_of(predicate: Instruction) -> Live:
    """Return the sizes, by dimension, at and beyond which a predicate is false."""
    predicate = _unmoved(predicate)
    if predicate.opcode == "compare":
        return _compared(predicate)
    if predicate.opcode == "and":
        left, right = map(mask_of, predicate.operands)
        return {**right, **left}
    if predicate.opcode == "broadcast":
        inner, dims = mask_of(predicate.operands[0]), predicate.attrs["dimensions"]
        return {dims[d]: sizes for d, sizes in inner.items()}
    return _ALL


def index_mask(predicate: Instruction) -> Live:
    """Return the size, by dimension, below which a predicate is true, and at and beyond which it is false."""
    predicate = _unmoved(predicate)
    if predicate.opcode == "broadcast":
        dims = predicate.attrs["dimensions"]
        return {dims[d]: sizes for d, sizes in index_mask(predicate.operands[0]).items()}
    return _compared(predicate) if predicate.opcode == "compare" else _ALL


def _compared(ins: Instruction) -> Live:
    left, right = map(_unmoved, ins.operands)
    if ins.attrs["direction"] == "GT":
        left, right = right, left
    elif ins.attrs["direction"] != "LT":
        return _ALL
    dimension, size = _counted(left), _scalar(right)
    return _ALL if dimension is None or size is None else {dimension: frozenset((size,))}


def _counted(ins: Instruction) -> int | None:
    """Return the dimension along which the elements of an array are their indices; None for other arrays."""
    if ins.opcode == "iota" and ins.shape.rank:
        dimension: int = ins.attrs["iota_dimension"]
        return dimension
    if ins.opcode == "broadcast":
        inner = _counted(_unmoved(ins.operands[0]))
        return None if inner is None else ins.attrs["dimensions"][inner]
    return None


def _scalar(ins: Instruction) -> Value | None:
    """Return the run-time integer that all elements of an array are equal to; None for other arrays."""
    while ins.opcode == "broadcast":
        ins = _unmoved(ins.operands[0])
    if ins.shape.size != 1 or ins.shape.dtype not in SIZE_TYPES:
        return None
    value = resolve(ins)
    return None if value.instruction.opcode in ("constant", "iota") else value


def _unmoved(ins: Instruction) -> Instruction:
    """Return the instruction behind others that forward an array of the same dimensions."""
    while ins.opcode in FORWARDING and ins.operands[0].shape.is_array and ins.operands[0].shape.dims == ins.shape.dims:
        ins = ins.operands[0]
    return ins


def reshaped(part: Live, dims: Sequence[int], to: Sequence[int]) -> Live:
    """Return a part of an array as one of a reshaped array, for the dimensions that the two have in common."""
    if prod(dims) != prod(to):
        return _ALL
    positions = {key: d for d, key in enumerate(_strides(to))}
    return {positions[key]: part[d] for d, key in enumerate(_strides(dims)) if d in part and key in positions}


def _strides(dims: Sequence[int]) -> list[tuple[int, int]]:
    """Return the size and the stride of each dimension, which tell apart all but those of one element."""
    strides = [1] * (len(dims) + 1)
    for d in range(len(dims) - 1, -1, -1):
        strides[d] = strides[d + 1] * dims[d]
    return [(outer, inner) for outer, inner in pairwise(strides)]


# ---------------------------------------------------------------------------------------------------------------- fills
_EXACT: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "add": np.add, "multiply": np.multiply, "negate": np.negative, "maximum": np.maximum,
    "minimum": np.minimum,
}  # fmt: skip


def fill_of(ins: Instruction, depth: int = 0) -> tuple[Live, Any]:
    """Return the sizes at and beyond which all elements of an array are equal, by dimension, and that element."""
    ins = _unmoved(ins)
    if ins.shape.dtype is ElementType.PRED and (mask := mask_of(ins)):
        return mask, False
    if ins.opcode == "select" and ins.operands[0].shape.dims == ins.shape.dims:
        filler = constant_of(ins.operands[2])
        if filler is None:
            return _ALL, None
        return {**_also_filled(ins.operands[1], filler, depth), **mask_of(ins.operands[0])}, filler
    if ins.opcode in FORWARDING and ins.operands and ins.operands[0].shape.is_array:
        part, filler = fill_of(ins.operands[0], depth)
        return reshaped(part, ins.operands[0].shape.dims, ins.shape.dims), filler
    if ins.opcode == "convert":
        part, filler = fill_of(ins.operands[0], depth)
        return part, None if filler is None else np.asarray(filler).astype(ins.shape.dtype.numpy_dtype)[()]
    if ins.opcode not in _EXACT or depth > _MAX_FILL_DEPTH or not _is_number(ins.shape.dtype):
        return _ALL, None
    fills = [fill_of(o, depth + 1) for o in ins.operands]
    if any(filler is None for _, filler in fills) or any(part != fills[0][0] for part, _ in fills):
        return _ALL, None
    with np.errstate(all="ignore"):
        return fills[0][0], _EXACT[ins.opcode](*(filler for _, filler in fills))


def _also_filled(ins: Instruction, filler: Any, depth: int) -> Live:
    """Return the sizes at and beyond which an array below another mask has the same element, to the bit."""
    if depth > _MAX_FILL_DEPTH:
        return _ALL
    part, own = fill_of(ins, depth + 1)
    return part if own is not None and np.asarray(own).tobytes() == np.asarray(filler).tobytes() else _ALL


def stops_of(ins: Instruction) -> Live:
    """Return the sizes at which a reduction may stop, by reduced dimension: all later elements change nothing."""
    opcode = combiner(ins.called[0]) if ins.shape.is_array else None
    if opcode is None:
        return _ALL
    part, filler = fill_of(ins.operands[0])
    dtype = ins.shape.dtype
    if filler is None or not is_identity(opcode, filler, constant_of(ins.operands[1]), dtype):
        return _ALL
    return {d: sizes for d, sizes in part.items() if d in ins.attrs["dimensions"]}


def is_identity(opcode: str, filler: Any, init: Any, dtype: ElementType) -> bool:
    """Return whether an element never changes the bits of a reduction with an initial value."""
    if opcode == "add" and dtype.is_float:  # 0 + -0 is 0, as is the sum of -0 with an initial 0
        return bool(filler == 0) and (bool(np.signbit(filler)) or _is_positive_zero(init))
    if opcode in IDEMPOTENT and not dtype.is_float and init is not None and int(filler) == int(init):
        return True  # it is combined with the others anyway
    unit = identity(opcode, dtype) if _is_number(dtype) or dtype is ElementType.PRED else None
    return unit is not None and bool(filler == unit)


def _is_number(dtype: ElementType) -> bool:
    return dtype.is_float or dtype.is_integer


def _is_positive_zero(init: Any) -> bool:
    return init is not None and bool(init == 0) and not np.signbit(init)
