"""Recognition of the sort key in the comparator of `sort`, for sorts by key instead of by comparison."""

from __future__ import annotations

from cyxla.xla.hlo.instruction import Instruction


def same_key(left: Instruction, right: Instruction) -> int | None:
    """Return the operand that both sides of a comparison read, or None.

    The left side must read parameters 2 n, the right side parameters 2 n + 1, both through the same instructions.
    """
    number: int | None = None
    visited: set[tuple[Instruction, Instruction]] = set()
    stack = [(left, right)]
    while stack:
        pair = stack.pop()
        if pair in visited:
            continue
        visited.add(pair)
        first, second = pair
        if first.opcode == "parameter":
            if second.opcode != "parameter":
                return None
            a, b = int(first.attrs["parameter_number"]), int(second.attrs["parameter_number"])
            if a % 2 or b != a + 1 or number not in (None, a // 2):
                return None
            number = a // 2
        elif (
            first.opcode != second.opcode
            or first.shape is not second.shape
            or first.called
            or first.attrs != second.attrs
        ):
            return None
        if len(first.operands) != len(second.operands):
            return None
        stack.extend(zip(first.operands, second.operands, strict=True))
    return number
