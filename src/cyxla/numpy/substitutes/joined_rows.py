"""Joins of the elements of a list, or of the rows of an array, whose number is known at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cyxla.numpy.tracing.arrays.run_time_sizes import fail_unless
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.containers import LEAF

_np: Any = np  # its functions dispatch to this package


def joined_rows(function: Callable[..., Any], values: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the result of a function that joins arrays, for a run-time number of them; None for others.

    Parameters
    ----------
    function : callable
        `np.stack` or another function of a sequence of arrays.
    values : object
        First argument.
    *args, **kwargs : object
        Further arguments: there is no result unless they are the axis alone.
    """
    join, count = _JOINS.get(function.__name__), _count_of(values)
    if join is None or count is None or len(args) > 1 or kwargs.keys() - {"axis"}:
        return None
    verb = "stack" if join is _stack else "concatenate"
    fail_unless(_np.greater(count, 0), count, 0, f"need at least one array to {verb}", ValueError)
    return join(values.as_array() if isinstance(values, StackedList) else values, *args, **kwargs)


def _count_of(values: Any) -> Any:
    """Return the number of arrays, if it is known at run time; else None."""
    if isinstance(values, StackedList):
        return values.length if values.holds_sized and values.elements.tree == LEAF else None
    return values.counts.get(0) if isinstance(values, SizedArray) else None


def _stack(rows: Any, axis: int = 0) -> Any:
    return _np.moveaxis(rows, 0, normalize_axis_index(axis, rows.ndim))


def _concatenate(rows: Any, axis: int | None = 0) -> Any:
    if axis is None:
        return _np.ravel(rows)
    if rows.ndim < 2:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    at = normalize_axis_index(axis, rows.ndim - 1)
    moved = _np.moveaxis(rows, 0, at)
    return moved.reshape((*moved.shape[:at], -1, *moved.shape[at + 2 :]))


def _hstack(rows: Any) -> Any:
    return rows if rows.ndim < 2 else _concatenate(rows, min(rows.ndim - 2, 1))


def _vstack(rows: Any) -> Any:
    return rows[:, None] if rows.ndim < 2 else rows if rows.ndim == 2 else _concatenate(rows)


def _dstack(rows: Any) -> Any:
    if rows.ndim > 3:
        return _concatenate(rows, 2)
    return rows[None, None] if rows.ndim < 2 else rows.T[None] if rows.ndim == 2 else _np.moveaxis(rows, 0, 2)


def _column_stack(rows: Any) -> Any:
    return rows[None] if rows.ndim < 2 else rows.T if rows.ndim == 2 else _concatenate(rows, 1)


_JOINS: Final[dict[str, Callable[..., Any]]] = {
    "stack": _stack, "concatenate": _concatenate, "hstack": _hstack, "vstack": _vstack, "dstack": _dstack,
    "column_stack": _column_stack,
}  # fmt: skip
