"""Sequential scatter of slices into an array."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.gather_scatter import check_nd_shapes
from cyxla.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]
Update = Callable[[Array, Any, Array], None]
"""Function of the target, a NumPy index and the updates; changes the target in place."""


def _assign(target: Array, index: Any, updates: Array) -> None:
    target[index] = updates  # the last of equal indices wins: NumPy writes in order


def _divide(target: Array, index: Any, updates: Array) -> None:
    if target.dtype.kind in "iu":
        if not np.all(updates):
            raise InvalidArgumentError("an update divides integers by 0")
        _one_by_one(target, index, updates, _truncate_div)
    else:
        _update_with_ufunc(np.true_divide)(target, index, updates)


def _truncate_div(a: Array, b: Array) -> Array:
    """Return the quotient of integers rounded towards zero."""
    inexact = (a % b != 0) & ((a < 0) != (b < 0))
    return np.asarray(a // b + inexact.astype(a.dtype))


def _one_by_one(target: Array, index: Any, updates: Array, fn: Callable[[Array, Array], Array]) -> None:
    """Apply `fn` index by index, so that duplicate indices accumulate."""
    index = index if isinstance(index, tuple) else (index,)
    count = index[0].shape if index else ()
    slices = np.broadcast_to(updates, count + target.shape[len(index) :])
    for row in np.ndindex(count):
        coordinates = tuple(int(part[row]) for part in index)
        target[coordinates] = fn(target[coordinates], slices[row])


def _update_with_ufunc(ufunc: np.ufunc) -> Update:
    def apply(target: Array, index: Any, updates: Array) -> None:
        if target.dtype.isbuiltin != 1:  # ufunc.at is slow for user-defined types
            _one_by_one(target, index, updates, ufunc)
        else:
            ufunc.at(target, index, updates)

    return apply


UPDATES: dict[str, Update] = {
    "update": _assign,
    "add": _update_with_ufunc(np.add),
    "sub": _update_with_ufunc(np.subtract),
    "mul": _update_with_ufunc(np.multiply),
    "div": _divide,
    "min": _update_with_ufunc(np.minimum),
    "max": _update_with_ufunc(np.maximum),
}


def check_indices(indices: Array, size: int) -> None:
    """Raise unless all indices are in [0, size)."""
    bad = (indices < 0) | (indices >= size)
    if bad.any():
        coordinates = tuple(int(i) for i in np.argwhere(bad)[0])
        index_text = f"[{','.join(map(str, coordinates))}]" if coordinates else ""
        raise InvalidArgumentError(
            f"indices{index_text} = {int(indices[coordinates])} lies outside of [0, {size})",
            hint="keep indices inside the first dimension",
        )


def scatter(target: Array, indices: Array, updates: Array, op: str) -> None:
    """Update the rows of `target` selected by `indices`, in place and in order.

    Raises
    ------
    InvalidArgumentError
        The shapes do not fit, or an index is out of range.
    """
    if target.ndim < 1:
        raise InvalidArgumentError("a scalar has no rows to scatter into")
    if updates.ndim and updates.shape != indices.shape + target.shape[1:]:
        raise InvalidArgumentError(
            f"updates {list(updates.shape)} are not one row of the target {list(target.shape)} for each of the indices "
            f"{list(indices.shape)}",
            hint=f"give them the shape {[*indices.shape, *target.shape[1:]]}, or that of a scalar",
        )
    check_indices(indices, target.shape[0])
    if indices.size:
        with np.errstate(all="ignore"):
            UPDATES[op](target, indices, updates)


def scatter_nd(target: Array, indices: Array, updates: Array, op: str, policy: str = "") -> None:
    """Update the slices of `target` selected by the rows of `indices`, in place and in order.

    Parameters
    ----------
    policy : str
        Policy for out-of-range indices: ``"IGNORE"`` skips their updates, others raise.

    Raises
    ------
    InvalidArgumentError
        The shapes do not fit, or an index is out of range.
    """
    check_nd_shapes(target.shape, indices, updates)
    depth = indices.shape[-1]
    rows = indices.reshape(prod(indices.shape[:-1]), depth)
    slices = updates.reshape(len(rows), *target.shape[depth:])
    bad = ((rows < 0) | (rows >= np.array(target.shape[:depth], np.int64))).any(axis=1)
    if bad.any():
        if policy != "IGNORE":
            raise_bad_row(indices, rows, int(np.argmax(bad)), target.shape)
        rows, slices = rows[~bad], slices[~bad]
    if len(rows) and slices.size:
        with np.errstate(all="ignore"):
            _apply_rows(target, rows, slices, op)


def _apply_rows(target: Array, rows: Array, slices: Array, op: str) -> None:
    if rows.shape[1]:
        UPDATES[op](target, tuple(rows.T), slices)
        return
    flat = target.reshape(1, *target.shape)  # without indices each update is a whole target
    UPDATES[op](flat, np.zeros(len(rows), np.int64), slices)


def raise_bad_row(indices: Array, rows: Array, row: int, shape: tuple[int, ...]) -> None:
    """Raise the error for a row of indices outside the target."""
    coordinates = [int(i) for i in np.unravel_index(row, indices.shape[:-1])] if indices.ndim > 1 else []
    raise InvalidArgumentError(
        f"indices{coordinates or ''} = {rows[row].tolist()} lies outside of the shape {list(shape)}",
        hint="keep every index inside its dimension",
    )
