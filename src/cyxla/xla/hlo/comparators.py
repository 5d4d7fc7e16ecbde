"""What a comparator of `sort` looks at, for whoever sorts by keys instead of by comparing."""

from __future__ import annotations

from cyxla.xla.hlo.instruction import Instruction


def same_key(left: Instruction, right: Instruction) -> int | None:
    """Tell which operand both sides look at, the left at its a and the right at its b, with the same instructions."""
    number: int | None = None
    seen: set[tuple[Instruction, Instruction]] = set()
    stack = [(left, right)]
    while stack:
        pair = stack.pop()
        if pair in seen:
            continue
        seen.add(pair)
        one, other = pair
        if one.opcode == "parameter":
            if other.opcode != "parameter":
                return None
            a, b = int(one.attrs["parameter_number"]), int(other.attrs["parameter_number"])
            if a % 2 or b != a + 1 or number not in (None, a // 2):
                return None
            number = a // 2
        elif one.opcode != other.opcode or one.shape is not other.shape or one.called or one.attrs != other.attrs:
            return None
        if len(one.operands) != len(other.operands):
            return None
        stack.extend(zip(one.operands, other.operands, strict=True))
    return number
