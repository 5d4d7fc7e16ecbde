"""Checks, after a program has run, of sizes that are known only at run time and must agree.

A program computes a vector of two numbers for each check: zeros if the sizes agree, else both sizes plus 1. The vector
is the last element of the program's result, and of that of each function that has checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.errors import OpError, ShapeError
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import broadcast_to, scalar, select, sizes_of, zeros_like

Array = np.ndarray[Any, Any]
WIDTH = 2  # numbers of a check


@dataclass(frozen=True)
class SizePair:
    """Two sizes, s32 scalars, that an op requires to be equal, and what it raises where they are not.

    With `holds`, a bool, the requirement is another one.
    """

    left: XlaOp
    right: XlaOp
    error: type[OpError] = ShapeError
    reason: str = "incompatible sizes"
    holds: XlaOp | None = None


@dataclass(frozen=True)
class SizeCheck:
    """A check of a node; `error` and `reason` are those of a `SizePair`."""

    node: str
    op: str
    error: type[OpError]
    reason: str


class SizeChecks:
    """The checks of one computation."""

    def __init__(self) -> None:
        self.checks: list[SizeCheck] = []
        self._values: list[XlaOp] = []

    def add_pair(self, node: str, op: str, pair: SizePair) -> None:
        """Add a check of two sizes."""
        self.checks.append(SizeCheck(node, op, pair.error, pair.reason))
        both = xla.concatenate([xla.reshape(x, (1,)) for x in (pair.left, pair.right)], 0)
        fails = xla.ne(pair.left, pair.right) if pair.holds is None else xla.not_(pair.holds)
        differ = broadcast_to(fails, (WIDTH,))
        self._values.append(select(differ, both + scalar(both, 1), zeros_like(both)))

    def add(self, checks: Sequence[SizeCheck], values: XlaOp) -> None:
        """Add checks of a function that was called, with the vector that it returned."""
        self.checks += checks
        self._values.append(values)

    def vector(self) -> XlaOp:
        """Return the numbers of all checks."""
        return xla.concatenate(self._values, 0)


def no_failures(builder: XlaBuilder, checks: Sequence[SizeCheck]) -> XlaOp:
    """Return the vector of checks that hold."""
    return xla.broadcast(xla.constant(builder, 0, ElementType.S32), (WIDTH * len(checks),))


def first_failures(before: XlaOp, after: XlaOp) -> XlaOp:
    """Return the vector of failures in the turns of a loop: those of earlier turns where there are any."""
    return select(xla.ne(before, broadcast_to(scalar(before, 0), sizes_of(before))), before, after)


def raise_failure(checks: Sequence[SizeCheck], values: Array) -> None:
    """Raise the error of the first check that failed, if any did.

    Raises
    ------
    OpError
        Sizes differ, in which case the error is that of the op.
    """
    if not values.any():
        return
    for check, (left, right) in zip(checks, values.reshape(-1, WIDTH).tolist(), strict=True):
        if left or right:
            raise check.error(
                f"{check.reason}: {left - 1} and {right - 1}, which are known only at run time",
                where=f"node '{check.node}' ({check.op})",
                node=check.node,
                op=check.op,
            )
