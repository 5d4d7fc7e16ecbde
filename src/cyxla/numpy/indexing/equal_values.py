"""Equality of traced values: whether two instructions compute the same, and checks of sizes that may differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.errors import ShapeError
from cyxla.numpy.tracing.arrays.run_time_sizes import fail_unless
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, value_of
from cyxla.xla.hlo.instruction import Instruction

_np: Any = np  # its functions dispatch to this package
_MAX_COMPARED = 10_000  # greatest number of instructions that a comparison of two values visits
_NEVER_EQUAL = ("parameter", "rng", "rng-bit-generator", "custom-call", "infeed")


def same_value(first: Instruction, second: Instruction) -> bool:
    """Return True if two instructions compute the same function of the same values."""
    pending, visited = [(first, second)], set()
    while pending:
        a, b = pending.pop()
        if a is b or (a, b) in visited:
            continue
        visited.add((a, b))
        is_same_operation = a.opcode == b.opcode and a.shape == b.shape and len(a.operands) == len(b.operands)
        if not is_same_operation or a.opcode in _NEVER_EQUAL or list(a.called) != list(b.called) or a.attrs != b.attrs:
            return False
        if len(visited) > _MAX_COMPARED:
            return False
        pending += zip(a.operands, b.operands, strict=True)
    return True


def same_size(first: TracedArray, second: TracedArray) -> bool:
    """Return True if two traced sizes are computed alike."""
    a, b = value_of(first).instruction, value_of(second).instruction
    assert a is not None
    assert b is not None
    return same_value(a, b)


def require_equal(first: Any, second: Any, message: str, error: Callable[..., Exception] = ShapeError) -> None:
    """Make runs in which two sizes differ fail; sizes that are computed alike need no check."""
    if isinstance(first, TracedArray) and isinstance(second, TracedArray) and same_size(first, second):
        return
    fail_unless(_np.equal(first, second), first, second, message, error)
