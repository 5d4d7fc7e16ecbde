"""Equality of values that a program computes twice, as exporters do for the start and the limit of a slice."""

from __future__ import annotations

from typing import Final

from cyxla.xla.hlo import Instruction

_MAX_PAIRS: Final = 256  # exporters compute an index by some 20 operations
_NOT_REPEATABLE: Final = frozenset({"custom-call", "infeed", "recv", "rng", "rng-get-and-update-state"})


def are_equal(one: Instruction | None, other: Instruction | None) -> bool:
    """Return True if two instructions apply the same operations to the same values."""
    if one is None or other is None:
        return False
    pairs, seen = [(one, other)], set[tuple[Instruction, Instruction]]()
    while pairs:
        pair = pairs.pop()
        if pair[0] is pair[1] or pair in seen:
            continue
        seen.add(pair)
        if len(seen) > _MAX_PAIRS or not _is_same_operation(*pair):
            return False
        pairs += zip(pair[0].operands, pair[1].operands, strict=True)
    return True


def _is_same_operation(one: Instruction, other: Instruction) -> bool:
    return (
        one.opcode == other.opcode
        and one.opcode not in _NOT_REPEATABLE
        and not one.called
        and one.shape == other.shape
        and len(one.operands) == len(other.operands)
        and one.attrs == other.attrs
    )
