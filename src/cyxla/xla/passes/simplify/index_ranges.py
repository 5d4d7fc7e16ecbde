"""Ranges of scalar integers and predicates, through loops and branches.

Counters of loops have the range that the loop's bounds give them, so that indices derived from them are known to be in
bounds. Other elements of a loop's state keep the range of their initial value if every iteration preserves it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

from cyxla.types import ElementType, Kind
from cyxla.xla.hlo import Computation, Instruction

Range: TypeAlias = tuple[int, int]

_MAX_SPECULATION = 4  # nested loops whose state is assumed to keep its range; each level at most doubles the work
_FORWARDING = frozenset({"bitcast", "broadcast", "copy", "opt-barrier", "reshape", "reverse", "slice", "transpose"})
_SWAPPED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}
_UP, _DOWN = frozenset({"LT", "LE"}), frozenset({"GT", "GE"})


RangeOf: TypeAlias = Callable[[Instruction], "Range | None"]


class Counter(NamedTuple):
    """Element of a loop's state that grows by a constant, and the comparison under which an iteration runs.

    Attributes
    ----------
    number : int
        Index of the element.
    step : int
        Constant that an iteration adds.
    direction : str
        Direction of the comparison of the element with the bound.
    bound : int or (int,)
        Constant, or the index of the unchanged element that holds it.
    """

    number: int
    step: int
    direction: str
    bound: int | tuple[int]


@cache
def limits(dtype: ElementType) -> Range | None:
    """Return the least and greatest value of an integer type; None for other types."""
    if dtype.kind is Kind.PRED:
        return 0, 1
    if not dtype.is_integer:
        return None
    return (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.is_signed else (0, (1 << dtype.bits) - 1)


class IndexRanges:
    """Ranges of the scalar integers of an entry computation, and of the loops and branches in it.

    Parameters
    ----------
    entry : Computation
        Computation without calls, whose loops and branches share no computations.
    """

    def __init__(self, entry: Computation) -> None:
        self.ranges: dict[Instruction, Range] = {}
        self._elements: dict[tuple[Instruction, int], Range] = {}
        self._depth = 0
        self._cut_off = 0  # number of loops whose state was not assumed to keep its range, at the greatest depth
        self._orders: dict[Computation, list[Instruction]] = {}
        self._visited: dict[Instruction, tuple[int, tuple[tuple[Range | None, ...], ...]]] = {}
        self._visit(entry)

    def of(self, ins: Instruction) -> Range | None:
        """Return the range of a scalar or of all elements of an array; None for types other than integers."""
        known = self.ranges.get(ins)
        return known if known is not None else limits(ins.shape.dtype) if ins.shape.is_array else None

    def element(self, ins: Instruction, number: int) -> Range | None:
        """Return the range of an element of a tuple-shaped result or parameter."""
        known = self._elements.get((ins, number))
        if known is not None:
            return known
        shape = ins.shape.elements[number]
        return limits(shape.dtype) if shape.is_array else None

    # ------------------------------------------------------------------------------------------------ computations
    def _visit(self, computation: Computation) -> None:
        order = self._orders.get(computation)
        if order is None:
            order = self._orders[computation] = [i for i in computation.post_order() if _may_have_range(i)]
        for ins in order:
            if ins.opcode == "while":
                self._while(ins)
            elif ins.opcode == "conditional":
                self._conditional(ins)
            else:
                self._array(ins)

    def _array(self, ins: Instruction) -> None:
        bounds = limits(ins.shape.dtype)
        found = self._derived(ins)
        if found is not None and bounds is not None and bounds[0] <= found[0] and found[1] <= bounds[1]:
            self.ranges[ins] = found
        else:
            self.ranges.pop(ins, None)

    def _derived(self, ins: Instruction) -> Range | None:
        if ins.opcode == "get-tuple-element":
            source, number = ins.operands[0], int(ins.attrs["index"])
            return self.of(source.operands[number]) if source.opcode == "tuple" else self.element(source, number)
        rule = _RULES.get(ins.opcode)
        if rule is None:
            return None
        operands = [self.of(o) for o in ins.operands]
        return None if any(r is None for r in operands) else rule(ins, operands)  # type: ignore[arg-type]

    def _leaf_ranges(self, ins: Instruction) -> list[Range | None]:
        """Return the ranges of the elements of a tuple; those that are no scalar integers have none."""
        count = len(ins.shape.elements)
        if ins.opcode == "tuple":
            return [self.of(o) if o.shape.is_array and o.shape.size == 1 else None for o in ins.operands]
        return [self.element(ins, n) if ins.shape.elements[n].is_array else None for n in range(count)]

    def _set(self, ins: Instruction, ranges: Sequence[Range | None]) -> None:
        for n, found in enumerate(ranges):
            if found is None:
                self._elements.pop((ins, n), None)
            else:
                self._elements[ins, n] = found

    # ------------------------------------------------------------------------------------------------ loops
    def _while(self, ins: Instruction) -> None:
        body, condition = ins.called
        parameter, test = body.parameters[0], condition.parameters[0]
        if not ins.shape.is_tuple or body.root.opcode != "tuple":
            self._set_unknown(ins, parameter, test)
            self._visit(condition)
            self._visit(body)
            return
        initial = self._leaf_ranges(ins.operands[0])
        inside, outside = self._state(ins, initial)
        known, cut_off = (tuple(initial), tuple(inside), tuple(outside)), self._cut_off
        depth, before = self._visited.get(ins, (-1, ()))
        if before == known and self._depth <= depth:
            return  # all ranges in the loop are those of its last visit
        open_ = {
            n for n, r in enumerate(inside) if r is None and initial[n] is not None and _is_narrow(ins, n, initial)
        }
        if self._depth < _MAX_SPECULATION:
            self._speculate(ins, open_, inside, outside, initial)
        elif open_:
            self._cut_off += 1
        self._set(parameter, inside)
        self._set(test, outside)
        self._set(ins, outside)
        self._visit(condition)
        self._visit(body)
        if self._cut_off == cut_off:
            self._visited[ins] = self._depth, known
        else:
            self._visited.pop(ins, None)

    def _speculate(
        self, ins: Instruction, open_: set[int], inside: list[Range | None], outside: list[Range | None],
        initial: list[Range | None],
    ) -> None:  # fmt: skip
        """Give the elements of unknown range in `open_` that of their initial value, if an iteration preserves it."""
        body, condition = ins.called
        self._depth += 1
        while open_:
            for n in open_:
                inside[n] = outside[n] = initial[n]
            self._set(body.parameters[0], inside)
            self._set(condition.parameters[0], outside)
            self._visit(body)
            lost = {n for n in open_ if not _within(self.of(body.root.operands[n]), initial[n])}
            if not lost:
                break
            for n in lost:
                inside[n] = outside[n] = None
            open_ -= lost
        self._depth -= 1

    def _set_unknown(self, *instructions: Instruction) -> None:
        for ins in instructions:
            if ins.shape.is_tuple:
                self._set(ins, [None] * len(ins.shape.elements))

    def _state(self, ins: Instruction, initial: list[Range | None]) -> tuple[list[Range | None], list[Range | None]]:
        """Return the ranges of the state inside an iteration, and at any evaluation of the condition."""
        body = ins.called[0]
        counters = {c.number: c for c in counters_of(ins, self.of)}
        inside: list[Range | None] = []
        outside: list[Range | None] = []
        for n, result in enumerate(body.root.operands):
            start = initial[n]
            within = around = None
            if start is not None and is_element(result, body.parameters[0], n):
                within = around = start
            elif start is not None and n in counters:
                counter = counters[n]
                bound = counter.bound if isinstance(counter.bound, int) else initial[counter.bound[0]]
                within, around = _counted(counter, start, (bound, bound) if isinstance(bound, int) else bound)
            inside.append(within)
            outside.append(around)
        return inside, outside

    def _conditional(self, ins: Instruction) -> None:
        results: list[list[Range | None]] = []
        predicate = ins.operands[0]
        for k, (branch, argument) in enumerate(zip(ins.called, ins.operands[1:], strict=True)):
            is_boolean = predicate.shape.dtype.kind is Kind.PRED
            bounds = self._implied(predicate, holds=k == 0) if is_boolean else {}
            parameter = branch.parameters[0]
            if argument.shape.is_tuple:
                ranges = self._leaf_ranges(argument)
                if argument.opcode == "tuple":
                    ranges = [self._narrowed(o, r, bounds) for o, r in zip(argument.operands, ranges, strict=True)]
                self._set(parameter, ranges)
            elif argument.shape.is_array:
                known = self._narrowed(argument, self.of(argument), bounds)
                if known is not None:
                    self.ranges[parameter] = known
            self._visit(branch)
            root = branch.root
            results.append(self._leaf_ranges(root) if root.shape.is_tuple else [self.of(root)])
        joined = [_union(column) for column in zip(*results, strict=True)]
        if ins.shape.is_tuple:
            self._set(ins, joined)
        elif joined and joined[0] is not None:
            self.ranges[ins] = joined[0]

    def _implied(self, predicate: Instruction, *, holds: bool) -> dict[Instruction, Range]:
        """Return bounds of scalars that follow from a predicate, or from its negation."""
        conjuncts = _conjuncts(predicate)
        bounds: dict[Instruction, Range] = {}
        for conjunct in conjuncts if holds or len(conjuncts) == 1 else ():
            if conjunct.opcode != "compare" or limits(conjunct.operands[0].shape.dtype) is None:
                continue
            direction = str(conjunct.attrs["direction"])
            low, high = _GAPS[direction if holds else _NEGATED[direction]]
            gap = linear(conjunct.operands[0], self).plus(linear(conjunct.operands[1], self), -1)
            if low > high or len(gap.terms) != 1 or abs(gap.terms[0][1]) != 1:
                continue
            (ins, sign), shift = gap.terms[0], gap.constant
            found = (low - shift, high - shift) if sign == 1 else (shift - high, shift - low)
            bounds[ins] = _meet(bounds.get(ins), found) or found
        return bounds

    def _narrowed(self, ins: Instruction, found: Range | None, bounds: Mapping[Instruction, Range]) -> Range | None:
        """Return the range of an argument under bounds of scalars; the range itself if they contradict it."""
        if not bounds or not ins.shape.is_array or limits(ins.shape.dtype) is None or ins.shape.size != 1:
            return found
        form = linear(ins, self)
        if len(form.terms) != 1 or form.terms[0][1] != 1 or form.terms[0][0] not in bounds:
            return found
        low, high = bounds[form.terms[0][0]]
        full = found if found is not None else limits(ins.shape.dtype)
        return _meet(full, (low + form.constant, high + form.constant)) or found


_FAR = 1 << 66
_GAPS = {
    "LT": (-_FAR, -1), "LE": (-_FAR, 0), "GT": (1, _FAR), "GE": (0, _FAR), "EQ": (0, 0), "NE": (1, 0),
}  # fmt: skip
_NEGATED = {"LT": "GE", "LE": "GT", "GT": "LE", "GE": "LT", "EQ": "NE", "NE": "EQ"}


def _meet(a: Range | None, b: Range) -> Range | None:
    """Return the intersection of two ranges; None if it is empty."""
    if a is None:
        return b
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low <= high else None


# ---------------------------------------------------------------------------------------------------------------- loops
def is_element(ins: Instruction, parameter: Instruction, number: int | None = None) -> bool:
    """Return whether an instruction is an element of a parameter: the one of a number, or any."""
    if ins.opcode != "get-tuple-element" or ins.operands[0] is not parameter:
        return False
    return number is None or ins.attrs["index"] == number


def counters_of(ins: Instruction, range_of: RangeOf | None = None) -> list[Counter]:
    """Return the counters of a loop that its condition bounds.

    The condition compares a counter with a bound, or is a predicate of the state that each iteration sets to such a
    comparison of the next state, possibly with others.
    """
    body, condition = ins.called
    if not ins.shape.is_tuple or body.root.opcode != "tuple":
        return []
    root, parameter = condition.root, condition.parameters[0]
    found = [_comparison(c, parameter, None) for c in _conjuncts(root)]
    if is_element(root, parameter):
        found = [c for c in _rotated(ins, int(root.attrs["index"]), range_of or _constant_range) if c is not None]
    counters = []
    for comparison in found:
        if comparison is None:
            continue
        number, direction, bound = comparison
        step = step_of(body, number)
        if (
            not step
            or (direction in _UP) != (step > 0)
            or (isinstance(bound, tuple) and not _unchanged(body, bound[0]))
        ):
            continue
        counters.append(Counter(number, step, direction, bound))
    return counters


_Comparison: TypeAlias = "tuple[int, str, int | tuple[int]]"


def _rotated(ins: Instruction, number: int, range_of: RangeOf) -> list[_Comparison | None]:
    """Return the comparisons that hold in every iteration of a loop whose condition is a predicate of its state."""
    body, initial = ins.called[0], ins.operands[0]
    if initial.opcode != "tuple":
        return []
    return [
        later
        for conjunct in _conjuncts(body.root.operands[number])
        if (later := _comparison(conjunct, body.parameters[0], body.root)) is not None
        and _holds_at_first(initial, number, later, range_of)
    ]


def _holds_at_first(initial: Instruction, number: int, comparison: _Comparison, range_of: RangeOf) -> bool:
    """Return whether the initial predicate of a state implies a comparison of its other elements."""
    counter, direction, bound = comparison
    left, right = initial.operands[counter], bound if isinstance(bound, int) else initial.operands[bound[0]]
    for conjunct in _conjuncts(initial.operands[number]):
        if conjunct.opcode == "compare":
            a, b = conjunct.operands
            written = str(conjunct.attrs["direction"])
            if _same(a, left) and _same(b, right) and written == direction:
                return True
            if _same(b, left) and _same(a, right) and _SWAPPED[written] == direction:
                return True
    start, limit = range_of(left), (bound, bound) if isinstance(bound, int) else range_of(initial.operands[bound[0]])
    return start is not None and limit is not None and decide(direction, start, limit) == (1, 1)


def _constant_range(ins: Instruction) -> Range | None:
    value = constant(ins)
    return None if value is None else (value, value)


def _same(ins: Instruction, other: Instruction | int) -> bool:
    value = constant(ins)
    if isinstance(other, int):
        return value == other
    return ins is other or (value is not None and value == constant(other))


def _comparison(ins: Instruction, parameter: Instruction | None, state: Instruction | None) -> _Comparison | None:
    """Return (element, direction, bound) of a comparison of elements of a state: a parameter's, or those of a tuple."""
    if ins.opcode != "compare" or not ins.operands[0].shape.dtype.is_integer or ins.shape.size != 1:
        return None
    left, right = ins.operands
    direction = str(ins.attrs["direction"])
    for a, b, d in ((left, right, direction), (right, left, _SWAPPED[direction])):
        number = _number(a, None if state is not None else parameter, state)
        if number is None or d not in _UP | _DOWN:
            continue
        limit = constant(b)
        bound = None if limit is not None else _number(b, parameter, state)
        if limit is not None or bound is not None:
            return number, d, limit if limit is not None else (bound,)  # type: ignore[return-value]
    return None


def _number(ins: Instruction, parameter: Instruction | None, state: Instruction | None) -> int | None:
    """Return the index of the element of a state that an instruction is."""
    if parameter is not None and is_element(ins, parameter):
        return int(ins.attrs["index"])
    if state is not None:
        return next((n for n, o in enumerate(state.operands) if o is ins), None)
    return None


def _conjuncts(ins: Instruction) -> list[Instruction]:
    if ins.opcode == "and" and ins.shape.is_array and ins.shape.dtype.kind is Kind.PRED:
        return [c for o in ins.operands for c in _conjuncts(o)]
    return [ins]


def constant(ins: Instruction) -> int | None:
    """Return the value of a scalar constant of an integer type."""
    if ins.opcode in _FORWARDING and ins.shape.size == 1:
        return constant(ins.operands[0])
    if ins.opcode != "constant" or not ins.shape.is_array or ins.shape.size != 1 or limits(ins.shape.dtype) is None:
        return None
    return int(ins.attrs["literal"].array.reshape(-1)[0])


def step_of(body: Computation, number: int) -> int | None:
    """Return the constant that an iteration adds to an element of the state; None for other elements."""
    next_ = body.root.operands[number]
    if next_.opcode not in ("add", "subtract"):
        return None
    left, right = next_.operands
    if is_element(left, body.parameters[0], number):
        by = constant(right)
        return by if by is None or next_.opcode == "add" else -by
    if next_.opcode == "add" and is_element(right, body.parameters[0], number):
        return constant(left)
    return None


def _unchanged(body: Computation, number: int) -> bool:
    return is_element(body.root.operands[number], body.parameters[0], number)


def _counted(counter: Counter, start: Range, bound: Range | None) -> tuple[Range | None, Range | None]:
    """Return the range of a counter inside an iteration, and with the value after the last one."""
    if bound is None:
        return None, None
    if counter.step > 0:
        last = bound[1] - (counter.direction == "LT")
        high = max(last, start[0])
        return (start[0], high), (start[0], max(last + counter.step, start[1]))
    first = bound[0] + (counter.direction == "GT")
    low = min(first, start[1])
    return (low, start[1]), (min(first + counter.step, start[0]), start[1])


def _may_have_range(ins: Instruction) -> bool:
    return ins.opcode in ("while", "conditional") or (ins.shape.is_array and limits(ins.shape.dtype) is not None)


def _within(found: Range | None, bounds: Range | None) -> bool:
    return found is not None and bounds is not None and bounds[0] <= found[0] and found[1] <= bounds[1]


def _is_narrow(ins: Instruction, number: int, initial: Sequence[Range | None]) -> bool:
    shape = ins.shape.elements[number]
    return shape.is_array and shape.size == 1 and initial[number] != limits(shape.dtype)


def _union(ranges: Sequence[Range | None]) -> Range | None:
    known = [r for r in ranges if r is not None]
    return (min(r[0] for r in known), max(r[1] for r in known)) if known and len(known) == len(ranges) else None


# --------------------------------------------------------------------------------------------------------- linear forms
class Linear(NamedTuple):
    """Scalar as a constant plus multiples of other scalars, each with its factor, in the order of their use."""

    constant: int
    terms: tuple[tuple[Instruction, int], ...] = ()

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """Return the sum with a multiple of another form."""
        terms = dict(self.terms)
        for ins, count in other.terms:
            terms[ins] = terms.get(ins, 0) + factor * count
        return Linear(self.constant + factor * other.constant, tuple((i, n) for i, n in terms.items() if n))


_MAX_LINEAR_DEPTH = 16


def linear(ins: Instruction, known: IndexRanges, depth: int = _MAX_LINEAR_DEPTH) -> Linear:
    """Return an integer scalar as a linear form; operations that may overflow are not followed."""
    value = constant(ins)
    if value is not None:
        return Linear(value)
    while ins.opcode in _FORWARDING and ins.operands[0].shape.size == 1:
        ins = ins.operands[0]
    if depth and ins in known.ranges and ins.opcode in _LINEAR and limits(ins.operands[0].shape.dtype) is not None:
        forms = [linear(o, known, depth - 1) for o in ins.operands]
        found = _LINEAR[ins.opcode](forms)
        if found is not None:
            return found
    return Linear(0, ((ins, 1),))


def _product(forms: Sequence[Linear]) -> Linear | None:
    first, second = forms if not forms[1].terms else forms[::-1]
    return None if second.terms else Linear(0).plus(first, second.constant)


_LINEAR: Mapping[str, Callable[[Sequence[Linear]], Linear | None]] = {
    "add": lambda forms: forms[0].plus(forms[1]), "subtract": lambda forms: forms[0].plus(forms[1], -1),
    "multiply": _product, "negate": lambda forms: Linear(0).plus(forms[0], -1), "convert": lambda forms: forms[0],
}  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- rules
_Rule = Callable[[Instruction, Sequence[Range]], "Range | None"]


def _corners(combine: Callable[[int, int], int]) -> _Rule:
    def rule(ins: Instruction, operands: Sequence[Range]) -> Range:
        (a, b), (c, d) = operands
        values = [combine(x, y) for x in (a, b) for y in (c, d)]
        return min(values), max(values)

    return rule


def _constant(ins: Instruction, operands: Sequence[Range]) -> Range | None:
    array = ins.attrs["literal"].array
    return (int(array.min()), int(array.max())) if 0 < array.size <= 4096 else None


def _and(ins: Instruction, operands: Sequence[Range]) -> Range | None:
    highs = [high for low, high in operands if low >= 0]
    if ins.shape.dtype.kind is Kind.PRED:
        return min(r[0] for r in operands), min(highs)
    return (0, min(highs)) if highs else None


def _or(ins: Instruction, operands: Sequence[Range]) -> Range | None:
    if ins.shape.dtype.kind is Kind.PRED:
        return max(r[0] for r in operands), max(r[1] for r in operands)
    return (0, (1 << max(r[1] for r in operands).bit_length()) - 1) if all(r[0] >= 0 for r in operands) else None


def _not(ins: Instruction, operands: Sequence[Range]) -> Range | None:
    low, high = operands[0]
    return (1 - high, 1 - low) if ins.shape.dtype.kind is Kind.PRED else (~high, ~low)


def decide(direction: str, left: Range, right: Range) -> Range:
    """Return the range of a comparison of integers in two ranges."""
    (a, b), (c, d) = left, right
    always, never = {
        "LT": (b < c, a >= d), "LE": (b <= c, a > d), "GT": (a > d, b <= c), "GE": (a >= d, b < c),
        "EQ": (a == b == c == d, b < c or a > d), "NE": (b < c or a > d, a == b == c == d),
    }[direction]  # fmt: skip
    return (1, 1) if always else (0, 0) if never else (0, 1)


def _compare(ins: Instruction, operands: Sequence[Range]) -> Range:
    if ins.operands[0] is ins.operands[1]:
        value = int(ins.attrs["direction"] in ("EQ", "LE", "GE"))
        return value, value
    return decide(str(ins.attrs["direction"]), *operands)


def _select(ins: Instruction, operands: Sequence[Range]) -> Range:
    low, high = operands[0]
    if low == high:
        return operands[2 - low]
    return min(operands[1][0], operands[2][0]), max(operands[1][1], operands[2][1])


def _clamp(ins: Instruction, operands: Sequence[Range]) -> Range:
    least, value, most = operands
    low = min(max(value[0], least[0]), most[1])
    return low, max(min(max(value[1], least[1]), most[1]), low)


def _divide(ins: Instruction, operands: Sequence[Range]) -> Range | None:
    (a, b), (c, d) = operands
    if c <= 0:
        return None
    quotients = [abs(x) // y * (1 if x >= 0 else -1) for x in (a, b) for y in (c, d)]
    return min(quotients), max(quotients)


def _remainder(ins: Instruction, operands: Sequence[Range]) -> Range | None:
    (a, b), (c, d) = operands
    if c <= 0:
        return None
    return max(-(d - 1), min(a, 0)), min(d - 1, max(b, 0))


def _convert(ins: Instruction, operands: Sequence[Range]) -> Range | None:
    return operands[0] if limits(ins.operands[0].shape.dtype) is not None else None


def _iota(ins: Instruction, operands: Sequence[Range]) -> Range:
    return 0, max(0, ins.shape.dims[ins.attrs["iota_dimension"]] - 1) if ins.shape.rank else 0


def _shift_right(ins: Instruction, operands: Sequence[Range]) -> Range | None:
    (a, b), (c, d) = operands
    return (a >> d, b >> c) if a >= 0 and 0 <= c <= d < ins.shape.dtype.bits else None


_RULES: Mapping[str, _Rule] = {
    "constant": _constant, "iota": _iota, "add": _corners(int.__add__), "multiply": _corners(int.__mul__),
    "subtract": _corners(int.__sub__), "minimum": _corners(min), "maximum": _corners(max), "and": _and, "or": _or,
    "not": _not, "compare": _compare, "select": _select, "clamp": _clamp, "divide": _divide, "remainder": _remainder,
    "convert": _convert, "negate": lambda ins, r: (-r[0][1], -r[0][0]), "shift-right-logical": _shift_right,
    "shift-right-arithmetic": _shift_right,
    "concatenate": lambda ins, r: _union(r), "pad": lambda ins, r: _union(r),
    **{name: lambda ins, r: r[0] for name in (*_FORWARDING, "dynamic-slice", "gather")},
}  # fmt: skip
