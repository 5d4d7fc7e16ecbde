"""The error of a size that depends on the values of arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyxla.errors import UnimplementedError

if TYPE_CHECKING:
    from cyxla.xla.stablehlo.syntax import Operation


class UnknownSizeError(UnimplementedError):
    """An operation whose sizes depend on values that are unknown when it is lowered.

    Attributes
    ----------
    operation : Operation or None
        The operation; set where its operands are known.
    """

    operation: Operation | None = None
