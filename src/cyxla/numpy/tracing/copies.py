"""Copies: arrays, lists and other containers that stand for an object of the plain run, but may not be it.

Elements of lists for which arrays stand are such copies, and so are variables after a loop or branch.
"""

from __future__ import annotations

from typing import Any

from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.containers import kind_of
from cyxla.numpy.tracing.trace import current


def noted_copy(value: Any) -> Any:
    """Return a value, with a note that it and the containers and arrays in it are copies."""
    trace = current()
    if trace is not None:
        _note(value, trace.program.copies)
    return value


def _note(value: Any, copies: dict[int, Any]) -> None:
    kind = kind_of(value)
    if kind is not None:
        copies[id(value)] = value
        for part in kind.parts(value):
            _note(part, copies)
    elif isinstance(value, TracedArray) and value.ndim:
        copies[id(value)] = value


def is_copy(value: Any) -> bool:
    """Return True if which object a value is in the plain run is not known."""
    trace = current()
    return trace is not None and id(value) in trace.program.copies
