"""What the text of a module says, before any of it is HLO: operations, regions, values."""

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
        As the text states it.
    owner : Operation or None
        What it is a result of.
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
        What it is given.
    operations : list of Operation
        The last one says what it returns.
    captures : dict of Value to None
        What it uses from around it, in order of first use.
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
        With its dialect, such as ``stablehlo.add``.
    at : int
        Where in the text.
    operands, results : list of Value
        What it takes and gives.
    attributes : dict
        By name; inherent and other ones together.
    regions : list of Region
        What it may run.
    location : Location, str or None
        Where the program's author wrote it.
    kind : str
        The name without its dialect.
    """

    name: str
    at: int
    operands: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)
    location: Location | str | None = None
    kind: str = ""
