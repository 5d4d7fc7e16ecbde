"""Range analysis of traced integers: bounds, and constant differences.

Both follow the instructions that compute the values. An unknown range is that of the dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from cyxla.numpy.tracing.trace import Trace, current
from cyxla.types import ElementType, Kind
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.instruction import Instruction

Range = tuple[int, int]
_DEPTH = 24  # longest chain of instructions to follow
_SMALL = 4096  # most elements of a constant to inspect
_SAME_ELEMENTS = ("broadcast", "reshape", "slice", "transpose", "reverse", "copy", "bitcast", "opt-barrier")
_FIRST_ELEMENTS = ("gather", "dynamic-slice")
_INTEGER_KINDS = (Kind.SIGNED, Kind.UNSIGNED, Kind.PRED)
_COMBINED_ELEMENTS = ("concatenate", "pad", "dynamic-update-slice")


# ------------------------------------------------------------------------------------------------------------- ranges
def range_of(op: XlaOp) -> Range:
    """Return the least and the greatest value that an element may have."""
    assert op.instruction is not None
    return _range(op.instruction, current(), _DEPTH)


def declare_range(op: XlaOp, low: int, high: int) -> None:
    """Declare inclusive bounds of a value of the current trace."""
    trace = current()
    if trace is not None and op.instruction is not None:
        trace.ranges[op.instruction] = (low, high)


def _limits(dtype: ElementType) -> Range:
    if dtype is ElementType.PRED:
        return 0, 1
    if dtype.kind not in (Kind.SIGNED, Kind.UNSIGNED) or dtype.numpy_dtype is None:
        return -(2**64), 2**64
    return _type_limits(dtype)


def _type_limits(dtype: ElementType) -> Range:
    return (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1) if dtype.is_signed else (0, 2**dtype.bits - 1)


def _range(ins: Instruction, trace: Trace | None, depth: int, known: dict[Instruction, Range] | None = None) -> Range:
    """Return the range of an instruction of a trace; `known` caches results."""
    known = {} if known is None else known
    if ins not in known:
        whole = _limits(ins.shape.dtype) if ins.shape.is_array else (-(2**64), 2**64)
        made = _derived_range(ins, trace, depth, known) if depth and ins.shape.is_array else None
        outside = made is None or made[0] < whole[0] or made[1] > whole[1]  # it may have wrapped around
        known[ins] = whole if outside or made is None else made
    return known[ins]


def _derived_range(ins: Instruction, trace: Trace | None, depth: int, known: dict[Instruction, Range]) -> Range | None:
    if trace is not None:
        if ins in trace.ranges:
            return trace.ranges[ins]
        if ins.opcode == "parameter" and trace.parent is not None:
            outer = next((o.instruction for o, i in trace.captures if i.instruction is ins), None)
            return None if outer is None else _range(outer, trace.parent, depth)
    rule = _RULES.get(ins.opcode)
    return None if rule is None else rule(ins, lambda k: _range(ins.operands[k], trace, depth - 1, known))


_RangeOf = Callable[[int], Range]


def _union(*ranges: Range) -> Range:
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


def _constant(ins: Instruction, of: _RangeOf) -> Range | None:
    array = ins.attrs["literal"].array
    if array.size == 0 or array.size > _SMALL or array.dtype.kind not in "iub":
        return None
    return int(array.min()), int(array.max())


def _iota(ins: Instruction, of: _RangeOf) -> Range:
    return 0, max(0, ins.shape.dims[ins.attrs["iota_dimension"]] - 1)


def _corners(combine: Callable[[int, int], int]) -> Callable[[Instruction, _RangeOf], Range]:
    def rule(ins: Instruction, of: _RangeOf) -> Range:
        (a, b), (c, d) = of(0), of(1)
        found = [combine(x, y) for x in (a, b) for y in (c, d)]
        return min(found), max(found)

    return rule


def _subtract(ins: Instruction, of: _RangeOf) -> Range | None:
    divisor = _divisor(ins)
    if divisor is not None:
        return _remainder_range(of(0), _range(divisor, current(), _DEPTH // 2))
    (a, b), (c, d) = of(0), of(1)
    return a - d, b - c


def _divisor(ins: Instruction) -> Instruction | None:
    """Return the divisor of a remainder, also of one written as x - x / y * y."""
    if ins.opcode == "remainder":
        return ins.operands[1]
    if ins.opcode != "subtract" or ins.operands[1].opcode != "multiply":
        return None
    quotient, by = ins.operands[1].operands
    whole = quotient.opcode == "divide" and quotient.shape.dtype.kind in _INTEGER_KINDS
    return by if whole and quotient.operands[0] is ins.operands[0] and quotient.operands[1] is by else None


def _remainder(ins: Instruction, of: _RangeOf) -> Range | None:
    return _remainder_range(of(0), of(1))


def _remainder_range(value: Range, divisor: Range) -> Range | None:
    (a, b), (c, d) = value, divisor
    most = max(abs(c), abs(d)) - 1
    if c <= 0 <= d:
        return None
    return max(-most, min(a, 0)), min(most, max(b, 0))


def _divide(ins: Instruction, of: _RangeOf) -> Range | None:
    (a, b), (c, d) = of(0), of(1)
    if c <= 0:
        return None
    return (a // d if a >= 0 else -(-a // c)), (b // c if b >= 0 else -(-b // d))


def _and(ins: Instruction, of: _RangeOf) -> Range | None:
    known = [high for low, high in (of(0), of(1)) if low >= 0]
    return (0, min(known)) if known else None


def _compare(ins: Instruction, of: _RangeOf) -> Range | None:
    """Return the range of a comparison, which is a single value if the operands' ranges decide it."""
    if ins.operands[0].shape.dtype.kind not in _INTEGER_KINDS:
        return None
    (a, b), (c, d) = of(0), of(1)
    always, never = {
        "LT": (b < c, a >= d), "LE": (b <= c, a > d), "GT": (a > d, b <= c), "GE": (a >= d, b < c),
        "EQ": (a == b == c == d, b < c or a > d), "NE": (b < c or a > d, a == b == c == d),
    }[str(ins.attrs["direction"])]  # fmt: skip
    return (1, 1) if always else (0, 0) if never else None


def _select(ins: Instruction, of: _RangeOf) -> Range:
    chosen = of(0)
    if chosen[0] == chosen[1]:
        return of(2 - chosen[0])
    return _floor_remainder(ins, of) or _union(of(1), of(2))


def _floor_remainder(ins: Instruction, of: _RangeOf) -> Range | None:
    """Return the range of Python's remainder by a positive number: HLO's, plus the divisor if negative."""
    wrong, shifted, rest = ins.operands
    divisor = _divisor(rest)
    if divisor is None or shifted.opcode != "add" or set(shifted.operands) != {rest, divisor}:
        return None
    low, high = _range(divisor, current(), _DEPTH // 2)
    return (0, high - 1) if low > 0 and _tests_negative(wrong, rest) else None


def _tests_negative(wrong: Instruction, rest: Instruction) -> bool:
    """Return True if a predicate tests rest < 0, possibly combined with rest != 0 or compared with False."""
    if wrong.opcode == "and":
        first, second = wrong.operands
        return _compares_with_zero(first, rest, "NE") and _tests_negative(second, rest)
    if wrong.opcode == "compare" and str(wrong.attrs["direction"]) == "NE":
        first, second = wrong.operands
        return _tests_negative(first, rest) and _range(second, current(), _DEPTH // 2) == (0, 0)
    return _compares_with_zero(wrong, rest, "LT")


def _compares_with_zero(ins: Instruction, rest: Instruction, direction: str) -> bool:
    if ins.opcode != "compare" or str(ins.attrs["direction"]) != direction or ins.operands[0] is not rest:
        return False
    return _range(ins.operands[1], None, 4) == (0, 0)


def _clamp(ins: Instruction, of: _RangeOf) -> Range:
    least, value, most = of(0), of(1), of(2)
    low = min(max(value[0], least[0]), most[1])
    return low, max(min(max(value[1], least[1]), most[1]), low)


def _convert(ins: Instruction, of: _RangeOf) -> Range | None:
    if ins.operands[0].shape.dtype.kind not in _INTEGER_KINDS:
        return None
    return of(0)


def _abs(ins: Instruction, of: _RangeOf) -> Range:
    low, high = of(0)
    return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _reduce(ins: Instruction, of: _RangeOf) -> Range | None:
    root = ins.called[0].root
    if len(root.operands) != 2 or any(o.opcode != "parameter" for o in root.operands):
        return None
    (a, b), (c, d) = of(0), of(1)
    count = prod(ins.operands[0].shape.dims[k] for k in ins.attrs["dimensions"])
    if root.opcode == "add":
        return count * a + c, count * b + d
    if root.opcode not in ("minimum", "maximum"):
        return None
    join = min if root.opcode == "minimum" else max
    return (join(a, c), join(b, d)) if count else (c, d)


def _element(ins: Instruction, of: _RangeOf) -> Range | None:
    """Return the range of a result of a sort, or of a reduction that only selects elements."""
    source, k = ins.operands[0], ins.attrs["index"]
    if source.opcode == "tuple":
        return _range(source.operands[k], current(), _DEPTH // 2)
    if source.opcode == "sort":
        return _range(source.operands[k], current(), _DEPTH // 2)
    if source.opcode == "reduce" and all(i.opcode in _SELECTING_OPCODES for i in source.called[0].instructions):
        half = len(source.operands) // 2
        return _union(*(_range(source.operands[n], current(), _DEPTH // 2) for n in (k, half + k)))
    return None


_SELECTING_OPCODES = frozenset({"parameter", "compare", "select", "and", "or", "not", "xor", "tuple", "constant"})
_RULES: Mapping[str, Callable[[Instruction, _RangeOf], Range | None]] = {
    "constant": _constant, "iota": _iota, "add": _corners(int.__add__), "multiply": _corners(int.__mul__),
    "minimum": _corners(min), "maximum": _corners(max), "subtract": _subtract, "remainder": _remainder,
    "divide": _divide, "and": _and, "select": _select, "reduce": _reduce, "clamp": _clamp, "compare": _compare,
    "convert": _convert, "abs": _abs, "negate": lambda ins, of: (-of(0)[1], -of(0)[0]), "get-tuple-element": _element,
    "sort": lambda ins, of: of(0),
    **{name: lambda ins, of: of(0) for name in (*_SAME_ELEMENTS, *_FIRST_ELEMENTS)},
    **{
        name: lambda ins, of: _union(of(0), *(of(k) for k in range(1, _data_operands(ins))))
        for name in _COMBINED_ELEMENTS
    },
}  # fmt: skip


def _data_operands(ins: Instruction) -> int:
    """Return the number of operands that hold elements of the result."""
    return 2 if ins.opcode == "dynamic-update-slice" else len(ins.operands)


# -------------------------------------------------------------------------------------------------------- differences
Linear = tuple[dict[Instruction, int], int]  # linear combination of values, and a constant


def difference(low: XlaOp, high: XlaOp) -> int | None:
    """Return the difference of two traced integers if it is constant; else None."""
    assert low.instruction is not None
    assert high.instruction is not None
    known: dict[Instruction, Linear] = {}
    terms, offset = _add_scaled(_linear(high.instruction, _DEPTH, known), _linear(low.instruction, _DEPTH, known))
    return None if terms else offset


def _add_scaled(one: Linear, other: Linear, factor: int = -1) -> Linear:
    terms = dict(one[0])
    for ins, count in other[0].items():
        terms[ins] = terms.get(ins, 0) + factor * count
    return {ins: count for ins, count in terms.items() if count}, one[1] + factor * other[1]


def _linear(ins: Instruction, depth: int, known: dict[Instruction, Linear]) -> Linear:
    """Return a scalar integer as a linear combination of values that are not sums."""
    if ins not in known:
        rule = _LINEAR.get(ins.opcode) if depth else None
        made = None if rule is None else rule(ins, lambda k: _linear(ins.operands[k], depth - 1, known))
        known[ins] = ({ins: 1}, 0) if made is None else made
    return known[ins]


def _scaled(ins: Instruction, of: Callable[[int], Linear]) -> Linear | None:
    one, other = of(0), of(1)
    if one[0] and other[0]:
        return None
    terms, factor = (one, other[1]) if one[0] else (other, one[1])
    return _add_scaled(({}, 0), terms, factor)


def _widened(ins: Instruction, of: Callable[[int], Linear]) -> Linear | None:
    have, wanted = ins.operands[0].shape.dtype, ins.shape.dtype
    whole = have.kind in (Kind.SIGNED, Kind.UNSIGNED)
    return of(0) if whole and _limits(wanted) == _union(_limits(wanted), _limits(have)) else None


_LINEAR: Mapping[str, Callable[[Instruction, Callable[[int], Linear]], Linear | None]] = {
    "constant": lambda ins, of: ({}, int(np.asarray(ins.attrs["literal"].array))),
    "add": lambda ins, of: _add_scaled(of(0), of(1), 1),
    "subtract": lambda ins, of: _add_scaled(of(0), of(1)),
    "negate": lambda ins, of: _add_scaled(({}, 0), of(0)),
    "multiply": _scaled,
    "convert": _widened,
    "reshape": lambda ins, of: of(0),
    "broadcast": lambda ins, of: of(0),
}
