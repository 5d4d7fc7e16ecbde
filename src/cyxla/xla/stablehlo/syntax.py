"""Syntax tree of a module's text: operations, regions, values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cyxla.types import Shape
from cyxla.xla.stablehlo.attributes import Location


class Value:
    """A result of an operation, or an argument of a region.

    Attributes
    ----------
    type : Shape
        The stated type.
    owner : Operation or None
        The operation whose result it is, or None for an argument.
    """

    __slots__ = ("owner", "type")

    def __init__(self, type_: Shape, owner: Operation | None = None) -> None:
        self.type = type_
        self.owner = owner


@dataclass(slots=True, eq=False)
class Region:
    """One block of operations.

    Attributes
    ----------
    arguments : list of Value
        Arguments of the region.
    operations : list of Operation
        Operations; the last one returns the results.
    captures : dict of Value to None
        Values of outer regions that it uses, in order of first use.
    """

    arguments: list[Value] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    captures: dict[Value, None] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Operation:
    """One operation.

    Attributes
    ----------
    name : str
        Name with its dialect, such as ``stablehlo.add``.
    at : int
        Position in the text.
    operands, results : list of Value
        Operands and results.
    attributes : dict
        Attributes by name, inherent and discardable.
    regions : list of Region
        Regions that it may run.
    location : Location, str or None
        Source location of the operation.
    kind : str
        Name without its dialect.
    """

    name: str
    at: int
    operands: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)
    location: Location | str | None = None
    kind: str = ""
