"""Searches for the first extreme along a dimension that one prebuilt call makes.

Programs find its index in two ways: as the least index of an element that is equal to the extreme, or NaN::

    m = f32[5] reduce(f32[5,9] x, -inf), dimensions={1}, to_apply=maximum
    e = or(compare(x, broadcast(m)), direction=EQ, compare(x, x), direction=NE)
    s = s32[5] reduce(select(e, iota, 8), 2147483647), dimensions={1}, to_apply=minimum
    i = s64[5] convert(s)

or by a reduction of pairs of elements and indices, whose combiner prefers NaNs, then the better element, then the
lower index::

    p = (f32[9], s64[9]) reduce(f32[5,9] x, iota, -inf, 0), dimensions={0}, to_apply=argmax
    i = s64[9] get-tuple-element(p), index=1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from math import prod
from typing import Final, NamedTuple

import numpy as np

from cyxla.types import ElementType, Kind
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.hlo.combiners import combiner

_DIRECTIONS: Final = {"maximum": "GT", "minimum": "LT"}
_FLOATS: Final = (ElementType.F32, ElementType.F64)
_INTEGERS: Final = (Kind.PRED, Kind.SIGNED, Kind.UNSIGNED)
_MAX_SIZE: Final = 2**31 - 1  # of the dimension, for places of 32 bits

# Sizes up to which NumPy's own functions are slower, measured: a row by itself, some rows, columns.
_LONE_ROW_BYTES: Final = 1 << 13
_FEW_ROWS, _FEW_ELEMENTS = 32, 1024  # rows, elements of all rows
_SHORT_ROW_BYTES, _FEW_BYTES = 400, 1 << 12  # of each of some rows, or of all
_4_BYTE_ROWS: Final = range(16, 32)  # elements of 4 bytes in a row, of which there may be any number
_FEW_STEPS: Final = 64  # elements of columns one after the other
_WIDE, _WIDE_BYTES = 16, 64  # elements and bytes of neighbouring columns that may be of any length


class Search(NamedTuple):
    """Search for the first extreme.

    Attributes
    ----------
    operand : Instruction
        Array that is searched.
    axis : int
        Dimension along which it is.
    extreme : str
        Combiner, ``maximum`` or ``minimum``.
    """

    operand: Instruction
    axis: int
    extreme: str


def find_searches(order: Iterable[Instruction]) -> dict[Instruction, Search]:
    """Return the searches that compute instructions, among the instructions of a program."""
    return {ins: found for ins in order if (found := _search(ins)) is not None and _is_searchable(found)}


def needed(
    order: Sequence[Instruction], results: Iterable[Instruction], searches: dict[Instruction, Search]
) -> list[Instruction]:
    """Return the instructions that a program needs, in their order, if searches read nothing but their operands."""
    read = set(results)
    kept = []
    for ins in reversed(order):
        if ins in read:
            kept.append(ins)
            read.update([searches[ins].operand] if ins in searches else ins.operands)
    return kept[::-1]


def is_quick(search: Search) -> bool:
    """Return whether the prebuilt search is faster than NumPy's function."""
    shape, axis = search.operand.shape, search.axis
    outer, n, inner = prod(shape.dims[:axis]), shape.dims[axis], prod(shape.dims[axis + 1 :])
    size = shape.dtype.itemsize
    if inner > 1:
        return outer * n <= _FEW_STEPS or (inner >= _WIDE and inner * size >= _WIDE_BYTES)
    if outer == 1:
        return n * size <= _LONE_ROW_BYTES
    is_short = n * size <= _SHORT_ROW_BYTES or outer * n * size <= _FEW_BYTES
    is_small = is_short and outer <= _FEW_ROWS and outer * n <= _FEW_ELEMENTS
    return is_small or (size == 4 and n in _4_BYTE_ROWS)


def _is_searchable(search: Search) -> bool:
    shape = search.operand.shape
    has_function = shape.dtype in _FLOATS or shape.dtype.kind in _INTEGERS
    is_plain = search.operand.opcode != "broadcast" and not shape.is_dynamic
    return has_function and is_plain and 0 < shape.dims[search.axis] <= _MAX_SIZE


def _search(ins: Instruction) -> Search | None:
    if ins.opcode == "convert" and ins.shape.dtype is ElementType.S64:
        return _comparison(ins.operands[0])
    return _pairs(ins) if ins.opcode == "get-tuple-element" and ins.attrs["index"] == 1 else None


def _comparison(ins: Instruction) -> Search | None:
    """Return the search that takes the least index of an element equal to the extreme."""
    axis = _reduced_axis(ins)
    if axis is None or combiner(ins.called[0]) != "minimum" or ins.operands[0].opcode != "select":
        return None
    condition, indices, _ = ins.operands[0].operands
    index_type = ins.shape.dtype
    if index_type not in (ElementType.S32, ElementType.S64) or not _is_worst(ins.operands[1], "minimum"):
        return None
    x, extreme = _equality(condition)
    if x is None or extreme is None or not _is_iota(indices, axis) or _reduced_axis(extreme) != axis:
        return None
    name = combiner(extreme.called[0])
    if extreme.operands[0] is not x or name not in _DIRECTIONS or not _is_worst(extreme.operands[1], name):
        return None
    return Search(_without_widening(x), axis, name)


def _equality(ins: Instruction) -> tuple[Instruction | None, Instruction | None]:
    """Return the array and the reduction to its extreme, to which a condition compares it; floats may be NaN."""
    if ins.opcode == "or":
        equal, odd = ins.operands
        x = odd.operands[0] if _is_comparison(odd, "NE") else None
        return (
            _equality(equal)
            if x is not None
            and x.shape.dtype.is_float
            and odd.operands[1] is x
            and (equal.opcode == "compare" and equal.operands[0] is x)
            else (None, None)
        )
    if not _is_comparison(ins, "EQ"):
        return None, None
    x, spread = ins.operands
    return x, _spread_reduction(spread)


def _is_comparison(ins: Instruction, direction: str) -> bool:
    return ins.opcode == "compare" and ins.attrs["direction"] == direction and ins.attrs.get("type") != "TOTALORDER"


def _spread_reduction(ins: Instruction) -> Instruction | None:
    """Return the reduction whose results a broadcast spreads along the reduced dimension again."""
    if ins.opcode != "broadcast":
        return None
    dims, mapping, source = ins.shape.dims, ins.attrs["dimensions"], ins.operands[0]
    while source.opcode == "reshape":
        source = source.operands[0]
    axis = _reduced_axis(source)
    if axis is None or source.operands[0].shape.dims != dims or list(mapping) != sorted(mapping):
        return None
    left = [d for d in range(len(dims)) if d not in mapping and d != axis]
    is_whole = all(dims[d] == 1 for d in left) and (axis not in mapping or dims[axis] == 1)
    return source if is_whole else None


def _pairs(ins: Instruction) -> Search | None:
    """Return the search that reduces pairs of elements and indices."""
    reduction = ins.operands[0]
    if reduction.opcode != "reduce" or len(reduction.operands) != 4 or len(reduction.attrs["dimensions"]) != 1:
        return None
    (axis,), (x, indices, start, zero) = reduction.attrs["dimensions"], reduction.operands
    is_s64 = ins.shape.dtype is ElementType.S64
    name = _combiners(is_float=x.shape.dtype.is_float).get(_text(reduction.called[0]))
    if name is None or not is_s64 or not _is_iota(indices, axis) or not _is_worst(start, name) or not _is_zero(zero):
        return None
    return Search(_without_widening(x), axis, name)


@cache
def _combiners(*, is_float: bool) -> dict[str, str]:
    """Return the extreme that a combiner of pairs finds, by its text."""
    found = {}
    for name, direction in _DIRECTIONS.items():
        better = f"compare.{direction}(0,2)"
        if is_float:
            better = f"or({better},compare.NE(0,0))"
        lower = f"or({better},and(compare.EQ(0,2),compare.LT(1,3)))"
        found[f"tuple(select({better},0,2),select({lower},1,3))"] = name
    return found


def _text(computation: Computation) -> str:
    """Return a computation as nested calls, with numbers for its parameters."""

    def text(ins: Instruction) -> str:
        if ins.opcode == "parameter":
            return str(ins.attrs["parameter_number"])
        name = f"compare.{ins.attrs['direction']}" if ins.opcode == "compare" else ins.opcode
        return f"{name}({','.join(map(text, ins.operands))})"

    return text(computation.root) if len(computation.instructions) <= _MAX_COMBINER else ""


_MAX_COMBINER: Final = 20  # instructions


def _reduced_axis(ins: Instruction) -> int | None:
    """Return the only dimension along which an instruction reduces an array."""
    is_one = ins.opcode == "reduce" and len(ins.operands) == 2 and len(ins.attrs["dimensions"]) == 1
    return ins.attrs["dimensions"][0] if is_one else None


def _is_worst(ins: Instruction, name: str) -> bool:
    """Return whether a constant is an element that is before no other."""
    t = ins.shape.dtype
    if ins.opcode != "constant" or ins.shape.rank:
        return False
    if t.is_float:
        worst = np.inf if name == "minimum" else -np.inf
    elif t.kind in (Kind.SIGNED, Kind.UNSIGNED):
        info = np.iinfo(t.numpy_dtype)
        worst = info.max if name == "minimum" else info.min
    else:
        return False
    return bool(ins.attrs["literal"].array == worst)


def _is_zero(ins: Instruction) -> bool:
    return ins.opcode == "constant" and not ins.attrs["literal"].array.any()


def _is_iota(ins: Instruction, axis: int) -> bool:
    return ins.opcode == "iota" and ins.attrs["iota_dimension"] == axis


def _without_widening(ins: Instruction) -> Instruction:
    """Return the bools that are converted to u8, whose bytes are the same."""
    is_widened = ins.opcode == "convert" and ins.shape.dtype is ElementType.U8
    return ins.operands[0] if is_widened and ins.operands[0].shape.dtype is ElementType.PRED else ins
