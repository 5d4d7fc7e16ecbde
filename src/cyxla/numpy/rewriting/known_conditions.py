"""Traced values that are better known while tracing: those of Python's integers and bools among the arguments."""

from __future__ import annotations

from operator import index
from typing import Any

from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.user_program.needed_values import inputs_of


def is_static(value: Any) -> bool:
    """Return True if a traced value is determined by integers and bools among the arguments of the call."""
    candidates = require_current().program.python_integers
    if not candidates:
        return False
    if isinstance(value, list):  # of run-time length
        return False
    inputs = inputs_of(value.op)
    return bool(inputs) and inputs is not None and inputs <= candidates


def needs_value(value: Any) -> None:
    """Raise the error by which the arguments that determine a value become static.

    Raises
    ------
    TraceError
        Always.
    """
    if value.dtype.kind == "b":
        bool(value)
    index(value)
