"""Results that NumPy computes after each run, from arrays that the program returns."""

from __future__ import annotations

from typing import Any

from cyxla.numpy.tracing.arrays.deferred_array import DeferredArray
from cyxla.numpy.tracing.containers import Kind, register_kind


class DeferredResult:
    """Container of the arrays that a deferred result is computed from.

    Parameters
    ----------
    array : DeferredArray
        Result.
    """

    def __init__(self, array: DeferredArray) -> None:
        self.array = array


def deferred_result(value: Any) -> DeferredResult | None:
    """Return the container of a deferred result; None for others."""
    return DeferredResult(value) if isinstance(value, DeferredArray) else None


register_kind(
    DeferredResult,
    Kind(
        lambda v: v.array.parts,
        lambda v: v.array,
        lambda v: [f" (argument {k} of {v.array.function.__name__})" for k in range(len(v.array.parts))],
        lambda key, parts: key.computed(parts),
    ),
)
