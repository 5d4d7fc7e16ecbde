"""Gathers and scatters by rows of indices: their shapes, and their policies for rows outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]


def check_nd_shapes(shape: tuple[int, ...], indices: Array, updates: Array) -> None:
    """Raise unless indices and updates fit a target of this shape."""
    if indices.ndim < 1:
        raise InvalidArgumentError("indices are a scalar; their last dimension must name a place")
    depth = indices.shape[-1]
    if depth > len(shape):
        raise InvalidArgumentError(f"rows of {depth} indices name no place in a target of rank {len(shape)}")
    want = indices.shape[:-1] + shape[depth:]
    if updates.shape != want:
        raise InvalidArgumentError(
            f"updates {list(updates.shape)} are not one slice of the target {list(shape)} for each row of the indices "
            f"{list(indices.shape)}",
            hint=f"give them the shape {list(want)}",
        )


def check_policy(policy: str) -> str:
    """What becomes of indices out of range: an error, or nothing where the policy is ``"IGNORE"``.

    Raises
    ------
    InvalidArgumentError
        There is no such policy.
    """
    if policy not in ("", "DEFAULT", "ERROR", "IGNORE"):
        raise InvalidArgumentError(f"bad_indices_policy is {policy!r}", hint='use "DEFAULT", "ERROR" or "IGNORE"')
    return policy
