"""Guards: values from outside that a program depends on, compared in C at every call."""

from __future__ import annotations

import types
from collections.abc import Sequence
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from cyxla._native.dispatch import CallSignature, Compiled, Node, Source

_numbers = count()
_FIXED = (type, types.FunctionType, types.BuiltinFunctionType, np.ufunc)


class Row(NamedTuple):
    """A value from outside, and the node that it must match.

    Attributes
    ----------
    source : Source
        Kind of place where the value is.
    of : int
        Number of an earlier row, or of a value passed.
    owner : object
        Globals with builtins, a cell, or a class or function that is the same at every call.
    key : object
        Name or key in that place.
    node : int
        Number of the first node of the value.
    same_as : int
        Number of an earlier row that has the same object, or -1.
    other_than : int
        Number of an earlier row that has another object, or -1.
    """

    source: Source
    of: int
    owner: Any
    key: Any
    node: int
    same_as: int = -1
    other_than: int = -1


def same_node(value: Any) -> tuple[Any, ...]:
    """Return the node of an object by identity; an instance of a class is not kept alive by it."""
    if not isinstance(value, _FIXED):
        try:
            return (Node.SAME, 1, 0, ref(value), None)
        except TypeError:
            pass
    return (Node.SAME, 0, 0, value, None)


class Guards:
    """Values from outside that a program depends on.

    Parameters
    ----------
    rows : sequence of Row
        Values.
    nodes : sequence of tuple
        Nodes as for `CallSignature`; the slots of inputs count from 0.
    inputs : int
        Number of inputs among them.
    """

    def __init__(self, rows: Sequence[Row], nodes: Sequence[tuple[Any, ...]], inputs: int) -> None:
        self.rows, self.nodes, self.inputs = list(rows), list(nodes), inputs
        self.number = next(_numbers)

    @cached_property
    def _signature(self) -> CallSignature:
        return CallSignature(Compiled(None, (0,), False, b""), 0, (), self.nodes, self.inputs, self._rows_after(0))

    def fetch(self, passed: tuple[Any, ...]) -> list[Any] | None:
        """Return the inputs from outside in a call that passes these values; None if the program does not serve it."""
        return self._signature.fetch(passed) if self.rows else []

    def signature(
        self, compiled: Compiled, nargs: int, kwnames: tuple[str, ...], nodes: list[Any], inputs: int,
        open_dims: list[tuple[int, int, int, int, bool]] | None = None,
    ) -> CallSignature:  # fmt: skip
        """Return the signature of a call with these nodes, inputs and open dimensions, and with the guards."""
        shifted = [(k, n, slot + inputs, key, names) for k, n, slot, key, names in self.nodes]
        rows = self._rows_after(len(nodes))
        return CallSignature(compiled, nargs, kwnames, [*nodes, *shifted], inputs + self.inputs, rows, open_dims)

    def _rows_after(self, nodes: int) -> list[tuple[Any, ...]]:
        return [tuple(row._replace(node=row.node + nodes)) for row in self.rows]
