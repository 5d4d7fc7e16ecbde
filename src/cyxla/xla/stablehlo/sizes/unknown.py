"""The error of a size that depends on the values of arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cyxla.errors import UnimplementedError

if TYPE_CHECKING:
    from cyxla.xla.stablehlo.syntax import Operation, Value


class UnknownSizeError(UnimplementedError):
    """An operation whose sizes depend on values that are unknown when it is lowered.

    Attributes
    ----------
    operation : Operation or None
        The operation; set where its operands are known.
    values : sequence of Value, optional
        Values that give the sizes, if they are fewer than its operands of sizes.
    """

    operation: Operation | None = None
    values: Sequence[Value] | None = None
