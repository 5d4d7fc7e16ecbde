"""Recognition of the sort key in the comparator of `sort`, for sorts by key instead of by comparison."""

from __future__ import annotations

from cyxla.xla.hlo.instruction import Instruction


def same_key(left: Instruction, right: Instruction) -> int | None:
    """Return the operand that both sides of a comparison read, or None.

    The left side must read parameters 2 n, the right side parameters 2 n + 1, both through the same instructions.
    """
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
