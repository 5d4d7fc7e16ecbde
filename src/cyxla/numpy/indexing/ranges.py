"""Range analysis of traced integers: bounds, and constant differences.

Both follow the instructions that compute the values. An unknown range is that of the dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from cyxla.numpy.tracing.trace import Trace, current
from cyxla.types import ElementType, Kind
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.compaction_signature import is_pure_compaction
from cyxla.xla.hlo.instruction import Instruction

Range = tuple[int, int]
_MAX_DEPTH = 24  # greatest number of instructions that are followed from a value
_MAX_CONSTANT = 4096  # constants of more elements are not inspected
_SAME_ELEMENTS = ("broadcast", "reshape", "slice", "transpose", "reverse", "copy", "bitcast", "opt-barrier")
_FIRST_ELEMENTS = ("gather", "dynamic-slice")
_INTEGER_KINDS = (Kind.SIGNED, Kind.UNSIGNED, Kind.PRED)
_COMBINED_ELEMENTS = ("concatenate", "pad", "dynamic-update-slice")


# ------------------------------------------------------------------------------------------------------------- ranges
def range_of(op: XlaOp) -> Range:
    """Return the least and the greatest value that an element may have."""
    assert op.instruction is not None
    return _range(op.instruction, current(), _MAX_DEPTH)


def range_within_size(op: XlaOp) -> Range:
    """Return the least and the greatest value of the elements of an array that are no padding."""
    assert op.instruction is not None
    ins = op.instruction
    if ins.opcode == "get-tuple-element" and is_pure_compaction(ins.operands[0]):
        selected = ins.operands[0].operands[1:]  # none of a compaction of indices
        ins = selected[ins.attrs["index"]] if ins.attrs["index"] < len(selected) else ins
    return _range(ins, current(), _MAX_DEPTH)


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


def _range(ins: Instruction, trace: Trace | None, depth: int, cache: dict[Instruction, Range] | None = None) -> Range:
    """Return the range of an instruction of a trace; `cache` caches results."""
    cache = {} if cache is None else cache
    if ins not in cache:
        limits = _limits(ins.shape.dtype) if ins.shape.is_array else (-(2**64), 2**64)
        derived = _derived_range(ins, trace, depth, cache) if depth and ins.shape.is_array else None
        may_overflow = derived is None or derived[0] < limits[0] or derived[1] > limits[1]  # an overflow is possible
        cache[ins] = limits if may_overflow or derived is None else derived
    return cache[ins]


def _derived_range(ins: Instruction, trace: Trace | None, depth: int, cache: dict[Instruction, Range]) -> Range | None:
    if trace is not None:
        if ins in trace.ranges:
            return trace.ranges[ins]
        if ins.opcode == "parameter" and trace.parent is not None:
            outer = next((o.instruction for o, i in trace.captures if i.instruction is ins), None)
            return None if outer is None else _range(outer, trace.parent, depth)
    rule = _RULES.get(ins.opcode)
    return None if rule is None else rule(ins, lambda k: _range(ins.operands[k], trace, depth - 1, cache))


_OperandRange = Callable[[int], Range]


def _union(*ranges: Range) -> Range:
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


def _constant(ins: Instruction, operand_range: _OperandRange) -> Range | None:
    array = ins.attrs["literal"].array
    if array.size == 0 or array.size > _MAX_CONSTANT or array.dtype.kind not in "iub":
        return None
    return int(array.min()), int(array.max())


def _iota(ins: Instruction, operand_range: _OperandRange) -> Range:
    return 0, max(0, ins.shape.dims[ins.attrs["iota_dimension"]] - 1)


def _corners(combine: Callable[[int, int], int]) -> Callable[[Instruction, _OperandRange], Range]:
    def rule(ins: Instruction, operand_range: _OperandRange) -> Range:
        (a, b), (c, d) = operand_range(0), operand_range(1)
        corners = [combine(x, y) for x in (a, b) for y in (c, d)]
        return min(corners), max(corners)

    return rule


def _subtract(ins: Instruction, operand_range: _OperandRange) -> Range | None:
    divisor = _divisor(ins)
    if divisor is not None:
        return _remainder_range(operand_range(0), _range(divisor, current(), _MAX_DEPTH // 2))
    (a, b), (c, d) = operand_range(0), operand_range(1)
    return a - d, b - c


def _divisor(ins: Instruction) -> Instruction | None:
    """Return the divisor of a remainder, also of one written as x - x / y * y."""
    if ins.opcode == "remainder":
        return ins.operands[1]
    if ins.opcode != "subtract" or ins.operands[1].opcode != "multiply":
        return None
    quotient, divisor = ins.operands[1].operands
    is_integer_division = quotient.opcode == "divide" and quotient.shape.dtype.kind in _INTEGER_KINDS
    return (
        divisor
        if is_integer_division and quotient.operands[0] is ins.operands[0] and quotient.operands[1] is divisor
        else None
    )


def _remainder(ins: Instruction, operand_range: _OperandRange) -> Range | None:
    return _remainder_range(operand_range(0), operand_range(1))


def _remainder_range(value: Range, divisor: Range) -> Range | None:
    (a, b), (c, d) = value, divisor
    bound = max(abs(c), abs(d)) - 1
    if c <= 0 <= d:
        return None
    return max(-bound, min(a, 0)), min(bound, max(b, 0))


def _divide(ins: Instruction, operand_range: _OperandRange) -> Range | None:
    (a, b), (c, d) = operand_range(0), operand_range(1)
    if c <= 0:
        return None
    return (a // d if a >= 0 else -(-a // c)), (b // c if b >= 0 else -(-b // d))


def _and(ins: Instruction, operand_range: _OperandRange) -> Range | None:
    bounds = [high for low, high in (operand_range(0), operand_range(1)) if low >= 0]
    return (0, min(bounds)) if bounds else None


def _compare(ins: Instruction, operand_range: _OperandRange) -> Range | None:
    """Return the range of a comparison, which is a single value if the operands' ranges decide it."""
    if ins.operands[0].shape.dtype.kind not in _INTEGER_KINDS:
        return None
    (a, b), (c, d) = operand_range(0), operand_range(1)
    always, never = {
        "LT": (b < c, a >= d), "LE": (b <= c, a > d), "GT": (a > d, b <= c), "GE": (a >= d, b < c),
        "EQ": (a == b == c == d, b < c or a > d), "NE": (b < c or a > d, a == b == c == d),
    }[str(ins.attrs["direction"])]  # fmt: skip
    return (1, 1) if always else (0, 0) if never else None


def _select(ins: Instruction, operand_range: _OperandRange) -> Range:
    predicate = operand_range(0)
    if predicate[0] == predicate[1]:
        return operand_range(2 - predicate[0])
    extremum = _EXTREMA.get(_extremum(ins))
    if extremum is not None:
        (a, b), (c, d) = operand_range(1), operand_range(2)
        return extremum(a, c), extremum(b, d)
    return _floor_remainder(ins, operand_range) or _union(operand_range(1), operand_range(2))


_EXTREMA: Mapping[str, Callable[[int, int], int]] = {"minimum": min, "maximum": max}


def _floor_remainder(ins: Instruction, operand_range: _OperandRange) -> Range | None:
    """Return the range of Python's remainder by a positive number: HLO's, plus the divisor if negative."""
    is_negative, corrected, remainder = ins.operands
    divisor = _divisor(remainder)
    if divisor is None or corrected.opcode != "add" or set(corrected.operands) != {remainder, divisor}:
        return None
    low, high = _range(divisor, current(), _MAX_DEPTH // 2)
    return (0, high - 1) if low > 0 and _tests_negative(is_negative, remainder) else None


def _tests_negative(predicate: Instruction, remainder: Instruction) -> bool:
    """Return True if a predicate tests rest < 0, possibly combined with rest != 0 or compared with False."""
    if predicate.opcode == "and":
        first, second = predicate.operands
        return _compares_with_zero(first, remainder, "NE") and _tests_negative(second, remainder)
    if predicate.opcode == "compare" and str(predicate.attrs["direction"]) == "NE":
        first, second = predicate.operands
        return _tests_negative(first, remainder) and _range(second, current(), _MAX_DEPTH // 2) == (0, 0)
    return _compares_with_zero(predicate, remainder, "LT")


def _compares_with_zero(ins: Instruction, remainder: Instruction, direction: str) -> bool:
    if ins.opcode != "compare" or str(ins.attrs["direction"]) != direction or ins.operands[0] is not remainder:
        return False
    return _range(ins.operands[1], None, 4) == (0, 0)


def _clamp(ins: Instruction, operand_range: _OperandRange) -> Range:
    low_range, value, high_range = operand_range(0), operand_range(1), operand_range(2)
    low = min(max(value[0], low_range[0]), high_range[1])
    return low, max(min(max(value[1], low_range[1]), high_range[1]), low)


def _convert(ins: Instruction, operand_range: _OperandRange) -> Range | None:
    if ins.operands[0].shape.dtype.kind not in _INTEGER_KINDS:
        return None
    return operand_range(0)


def _abs(ins: Instruction, operand_range: _OperandRange) -> Range:
    low, high = operand_range(0)
    return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _negate(ins: Instruction, operand_range: _OperandRange) -> Range:
    low, high = operand_range(0)
    return -high, -low


def _reduce(ins: Instruction, operand_range: _OperandRange) -> Range | None:
    root = ins.called[0].root
    if len(root.operands) != 2 or any(o.opcode != "parameter" for o in root.operands):
        return None
    (a, b), (c, d) = operand_range(0), operand_range(1)
    count = prod(ins.operands[0].shape.dims[k] for k in ins.attrs["dimensions"])
    if root.opcode == "add":
        return count * a + c, count * b + d
    if root.opcode not in ("minimum", "maximum"):
        return None
    join = min if root.opcode == "minimum" else max
    return (join(a, c), join(b, d)) if count else (c, d)


def _element(ins: Instruction, operand_range: _OperandRange) -> Range | None:
    """Return the range of a result of a sort, or of a reduction that only selects elements."""
    source, k = ins.operands[0], ins.attrs["index"]
    if source.opcode == "tuple":
        return _range(source.operands[k], current(), _MAX_DEPTH // 2)
    if source.opcode == "sort":
        return _range(source.operands[k], current(), _MAX_DEPTH // 2)
    if source.opcode == "reduce" and all(i.opcode in _SELECTING_OPCODES for i in source.called[0].instructions):
        half = len(source.operands) // 2
        return _union(*(_range(source.operands[n], current(), _MAX_DEPTH // 2) for n in (k, half + k)))
    return None


_SELECTING_OPCODES = frozenset({"parameter", "compare", "select", "and", "or", "not", "xor", "tuple", "constant"})
_RULES: Mapping[str, Callable[[Instruction, _OperandRange], Range | None]] = {
    "constant": _constant, "iota": _iota, "add": _corners(int.__add__), "multiply": _corners(int.__mul__),
    "minimum": _corners(min), "maximum": _corners(max), "subtract": _subtract, "remainder": _remainder,
    "divide": _divide, "and": _and, "select": _select, "reduce": _reduce, "clamp": _clamp, "compare": _compare,
    "convert": _convert, "abs": _abs, "negate": _negate, "get-tuple-element": _element,
    "sort": lambda ins, operand_range: operand_range(0),
    **{name: lambda ins, operand_range: operand_range(0) for name in (*_SAME_ELEMENTS, *_FIRST_ELEMENTS)},
    **{
        name: lambda ins, operand_range: _union(*map(operand_range, range(_data_operands(ins))))
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
    cache: dict[Instruction, Linear] = {}
    terms, offset = _add_scaled(
        _linear_form(high.instruction, _MAX_DEPTH, cache), _linear_form(low.instruction, _MAX_DEPTH, cache)
    )
    return None if terms else offset


def greatest_difference(low: XlaOp, high: XlaOp) -> Linear:
    """Return a bound of the difference of two traced integers, as terms and a constant.

    An integer that is clipped is bounded by what is clipped: a window of a loop, as ``x[max(i - 3, 0) : i + 4]`` takes,
    has a constant bound. Of several bounds, the one of fewest terms is returned.
    """
    assert low.instruction is not None
    assert high.instruction is not None
    cache: dict[Instruction, Linear] = {}
    found = [
        _add_scaled(_linear_form(above, _MAX_DEPTH, cache), _linear_form(below, _MAX_DEPTH, cache))
        for above in _clipped(high.instruction, "minimum")
        for below in _clipped(low.instruction, "maximum")
    ]
    return min(found, key=lambda form: (len(form[0]), form[1]))


def _clipped(ins: Instruction, opcode: str) -> list[Instruction]:
    """Return an integer, and the operands of the extremum that it is."""
    while ins.opcode in ("reshape", "broadcast") and ins.operands[0].shape.size == ins.shape.size == 1:
        ins = ins.operands[0]
    if ins.opcode == opcode:
        return [ins, *(i for o in ins.operands for i in _clipped(o, opcode))]
    if _extremum(ins) != opcode:
        return [ins]
    return [ins, *(i for o in ins.operands[1:] for i in _clipped(o, opcode))]


def _extremum(ins: Instruction) -> str:
    """Return the opcode of the extremum that a choice between two integers makes; empty if it makes none."""
    if ins.opcode != "select" or ins.shape.size != 1 or ins.shape.dtype.kind not in _INTEGER_KINDS:
        return ""
    test, chosen, other = ins.operands
    while test.opcode == "reshape":
        test = test.operands[0]
    if test.opcode != "compare" or str(test.attrs["direction"]) not in _ORDER:
        return ""
    chooses_less = _ORDER[str(test.attrs["direction"])]
    if _are_same(test.operands, (chosen, other)):
        return "minimum" if chooses_less else "maximum"
    return ("maximum" if chooses_less else "minimum") if _are_same(test.operands, (other, chosen)) else ""


_ORDER: Mapping[str, bool] = {"LT": True, "LE": True, "GT": False, "GE": False}


def _are_same(one: Sequence[Instruction], other: Sequence[Instruction]) -> bool:
    """Return whether integers are the same values by their linear forms."""
    cache: dict[Instruction, Linear] = {}
    return all(
        _add_scaled(_linear_form(a, _MAX_DEPTH, cache), _linear_form(b, _MAX_DEPTH, cache)) == ({}, 0)
        for a, b in zip(one, other, strict=True)
    )


def _add_scaled(first: Linear, second: Linear, factor: int = -1) -> Linear:
    terms = dict(first[0])
    for ins, count in second[0].items():
        terms[ins] = terms.get(ins, 0) + factor * count
    return {ins: count for ins, count in terms.items() if count}, first[1] + factor * second[1]


def _linear_form(ins: Instruction, depth: int, cache: dict[Instruction, Linear]) -> Linear:
    """Return a scalar integer as a linear combination of values that are not sums."""
    if ins not in cache:
        rule = _LINEAR.get(ins.opcode) if depth else None
        form = None if rule is None else rule(ins, lambda k: _linear_form(ins.operands[k], depth - 1, cache))
        cache[ins] = ({ins: 1}, 0) if form is None else form
    return cache[ins]


def _linear_product(ins: Instruction, operand_range: Callable[[int], Linear]) -> Linear | None:
    first, second = operand_range(0), operand_range(1)
    if first[0] and second[0]:
        return None
    terms, factor = (first, second[1]) if first[0] else (second, first[1])
    return _add_scaled(({}, 0), terms, factor)


def _linear_convert(ins: Instruction, operand_range: Callable[[int], Linear]) -> Linear | None:
    source, target = ins.operands[0].shape.dtype, ins.shape.dtype
    is_integer = source.kind in (Kind.SIGNED, Kind.UNSIGNED)
    return operand_range(0) if is_integer and _limits(target) == _union(_limits(target), _limits(source)) else None


def _linear_constant(ins: Instruction, operand_range: Callable[[int], Linear]) -> Linear | None:
    is_integer = ins.shape.size == 1 and ins.shape.dtype.kind in _INTEGER_KINDS
    return ({}, int(np.asarray(ins.attrs["literal"].array).item())) if is_integer else None


_LINEAR: Mapping[str, Callable[[Instruction, Callable[[int], Linear]], Linear | None]] = {
    "constant": _linear_constant,
    "add": lambda ins, operand_range: _add_scaled(operand_range(0), operand_range(1), 1),
    "subtract": lambda ins, operand_range: _add_scaled(operand_range(0), operand_range(1)),
    "negate": lambda ins, operand_range: _add_scaled(({}, 0), operand_range(0)),
    "multiply": _linear_product,
    "convert": _linear_convert,
    "reshape": lambda ins, operand_range: operand_range(0),
    "broadcast": lambda ins, operand_range: operand_range(0),
}
