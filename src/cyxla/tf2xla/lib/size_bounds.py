"""Ranges of integers that are computed of sizes known only at run time, as bounds of arrays that have these sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.builder import XlaOp

Array = np.ndarray[Any, Any]
Range: TypeAlias = tuple[Array, Array]  # least and greatest value of each element

_Rule: TypeAlias = Callable[[Instruction, list[Range]], Range]


class SizeBounds:
    """The sizes of one computation that are known only at run time, and the ranges of what is computed of them."""

    def __init__(self) -> None:
        self._ranges: dict[Instruction, Range | None] = {}

    @property
    def is_empty(self) -> bool:
        """True if no size was noted."""
        return not self._ranges

    def note(self, size: XlaOp, bound: int) -> None:
        """Remember that a scalar is a size, not larger than a bound."""
        if size.instruction is not None and size.instruction.opcode != "constant":
            self._ranges[size.instruction] = (np.int64(0), np.int64(bound))  # type: ignore[assignment]

    def range_of(self, op: XlaOp) -> Range | None:
        """Return the least and the greatest values of the elements of an array of integers; None if unknown."""
        return None if op.instruction is None or self.is_empty else self._range(op.instruction)

    def _range(self, instruction: Instruction) -> Range | None:
        if instruction not in self._ranges:
            self._ranges[instruction] = self._computed(instruction)
        return self._ranges[instruction]

    def _computed(self, instruction: Instruction) -> Range | None:
        if not instruction.shape.is_array or not instruction.shape.dtype.is_integer:
            return None
        if instruction.opcode == "constant":
            value = instruction.attrs["literal"].array.astype(np.int64)
            return value, value
        rule = _RULES.get(instruction.opcode)
        operands = [self._range(x) for x in instruction.operands]
        known = [x for x in operands if x is not None]
        return rule(instruction, known) if rule is not None and len(known) == len(operands) else None


def _both(function: Callable[..., Array]) -> _Rule:
    """Return the rule of a function that does not decrease with any operand."""
    return lambda x, operands: (
        function(x, *[low for low, _ in operands]),
        function(x, *[high for _, high in operands]),
    )


def _of_products(function: Callable[[Array, Array], Array]) -> _Rule:
    def rule(x: Instruction, operands: list[Range]) -> Range:
        (a, b), (c, d) = operands
        ends = [function(p, q) for p in (a, b) for q in (c, d)]
        return np.minimum.reduce(ends), np.maximum.reduce(ends)

    return rule


def _subtract(x: Instruction, operands: list[Range]) -> Range:
    (a, b), (c, d) = operands
    return a - d, b - c


def _slice(x: Instruction, value: Array) -> Array:
    return value[tuple(slice(d.start, d.limit, d.stride) for d in x.attrs["slice"])]


def _broadcast(x: Instruction, value: Array) -> Array:
    dims = x.attrs["dimensions"]
    shape = [value.shape[dims.index(d)] if d in dims else 1 for d in range(x.shape.rank)]
    return np.broadcast_to(value.reshape(shape), x.shape.dims)


_RULES: dict[str, _Rule] = {
    "add": _both(lambda x, a, b: a + b),
    "broadcast": _both(_broadcast),
    "concatenate": _both(lambda x, *parts: np.concatenate(parts, x.attrs["dimensions"][0])),
    "convert": _both(lambda x, a: a),
    "maximum": _both(lambda x, a, b: np.maximum(a, b)),
    "minimum": _both(lambda x, a, b: np.minimum(a, b)),
    "multiply": _of_products(np.multiply),
    "reshape": _both(lambda x, a: a.reshape(x.shape.dims)),
    "slice": _both(_slice),
    "subtract": _subtract,
}
