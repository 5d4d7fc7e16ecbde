"""Trip counts of loops with a counter.

A counter is an element of the state that starts as a constant, is incremented (or decremented) by a constant, and is
compared with a constant in the condition::

    for (i = start; i < bound; i += step)
"""

from __future__ import annotations

from typing import Final

from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.passes.engine.pattern import uniform_value

_SWAPPED: Final = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE"}


def known_trip_count(ins: Instruction) -> int | None:
    """Return the trip count of a `while`, or None if it is unknown."""
    body, condition = ins.called
    comparison = _comparison(condition)
    if comparison is None:
        return None
    number, direction, bound_source = comparison
    start = _initial(ins.operands[0], number)
    bound = bound_source if not isinstance(bound_source, tuple) else _unchanged(ins, bound_source[0])
    step = _step(body, number)
    if start is None or bound is None or step is None or not step:
        return None
    counter = condition.root.operands[0].shape.dtype
    low, high = (
        (-(1 << (counter.bits - 1)), (1 << (counter.bits - 1)) - 1)
        if counter.is_signed
        else (0, (1 << counter.bits) - 1)
    )
    trips = _trips(start, bound, step, direction)
    return trips if trips is not None and low <= start + trips * step <= high else None


def _trips(start: int, bound: int, step: int, direction: str) -> int | None:
    distance = bound - start
    if direction == "NE":
        return distance // step if distance % step == 0 and distance // step >= 0 else None
    if direction in ("GT", "GE"):
        distance, step = -distance, -step
    if direction in ("LE", "GE"):
        distance += 1
    if distance <= 0:
        return 0
    return -(-distance // step) if step > 0 else None


def _comparison(condition: Computation) -> tuple[int, str, int | tuple[int]] | None:
    """Return the counter's index, the direction, and the bound or the index of the element that holds it."""
    root = condition.root
    if root.opcode != "compare" or not root.operands[0].shape.dtype.is_integer or root.attrs["direction"] == "EQ":
        return None
    left, right = (_operand(o, condition.parameters[0]) for o in root.operands)
    direction = str(root.attrs["direction"])
    if isinstance(left, tuple) and right is not None:
        return left[0], direction, right
    if isinstance(right, tuple) and left is not None:
        return right[0], _SWAPPED[direction], left
    return None


def _operand(ins: Instruction, parameter: Instruction) -> int | tuple[int] | None:
    """Return a constant, or (index,) of an element of the state."""
    if ins.opcode == "get-tuple-element" and ins.operands[0] is parameter:
        return (int(ins.attrs["index"]),)
    value = uniform_value(ins)
    return int(value.reshape(())) if value is not None else None


def _initial(state: Instruction, number: int) -> int | None:
    if state.opcode == "constant":
        return int(state.attrs["literal"].elements[number].array.reshape(()))
    if state.opcode != "tuple" or state.operands[number].shape.rank:
        return None
    value = uniform_value(state.operands[number])
    return int(value.reshape(())) if value is not None else None


def _unchanged(ins: Instruction, number: int) -> int | None:
    body = ins.called[0]
    if body.root.opcode != "tuple" or _operand(body.root.operands[number], body.parameters[0]) != (number,):
        return None
    return _initial(ins.operands[0], number)


def _step(body: Computation, number: int) -> int | None:
    if body.root.opcode != "tuple":
        return None
    next_ = body.root.operands[number]
    if next_.opcode not in ("add", "subtract"):
        return None
    left, right = (_operand(o, body.parameters[0]) for o in next_.operands)
    if left == (number,) and isinstance(right, int):
        return right if next_.opcode == "add" else -right
    return left if right == (number,) and isinstance(left, int) and next_.opcode == "add" else None
