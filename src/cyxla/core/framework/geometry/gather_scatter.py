"""Shapes of gathers and scatters by index vectors, and their policies for indices out of range."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]


def check_nd_shapes(shape: tuple[int, ...], indices: Array, updates: Array) -> None:
    """Check the shapes of indices and updates against that of the target."""
    if indices.ndim < 1:
        raise InvalidArgumentError("indices must have at least one dimension: the last one holds the coordinates")
    depth = indices.shape[-1]
    if depth > len(shape):
        raise InvalidArgumentError(f"{depth} coordinates are too many for a target of rank {len(shape)}")
    expected = indices.shape[:-1] + shape[depth:]
    if updates.shape != expected:
        raise InvalidArgumentError(
            f"updates {list(updates.shape)} are not one slice of the target {list(shape)} for each row of the indices "
            f"{list(indices.shape)}",
            hint=f"their shape must be {list(expected)}",
        )


def check_policy(policy: str) -> str:
    """Check and return the policy for indices out of range: an error, or ``"IGNORE"``.

    Raises
    ------
    InvalidArgumentError
        There is no such policy.
    """
    if policy not in ("", "DEFAULT", "ERROR", "IGNORE"):
        raise InvalidArgumentError(f"bad_indices_policy is {policy!r}", hint='use "DEFAULT", "ERROR" or "IGNORE"')
    return policy
