"""Shapes of graph values, whose rank or sizes may be unknown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import SupportsIndex, overload

from cyxla.errors import InvalidArgumentError, ShapeError

Dim = int | None
MAX_RANK = 254


class TensorShape:
    """Immutable shape that may be partially known.

    Parameters
    ----------
    dims : iterable of (int or None), or None
        Sizes, None for unknown ones; None instead of the sequence for an unknown rank.

    Raises
    ------
    InvalidArgumentError
        A size is negative, or there are more than 254 dimensions, the limit of TensorFlow.
    """

    __slots__ = ("dims",)
    dims: tuple[Dim, ...] | None

    def __init__(self, dims: Iterable[SupportsIndex | None] | None = None) -> None:
        sizes = None if dims is None else tuple(None if d is None else d.__index__() for d in dims)
        if sizes is not None and any(d is not None and d < 0 for d in sizes):
            raise InvalidArgumentError(
                f"a shape must not have negative sizes: {list(sizes)}", hint="use None for an unknown size"
            )
        if sizes is not None and len(sizes) > MAX_RANK:
            raise InvalidArgumentError(f"a shape has {len(sizes)} dimensions; the limit is {MAX_RANK}")
        self.dims = sizes

    @property
    def rank(self) -> int | None:
        """Number of dimensions, or None if unknown."""
        return None if self.dims is None else len(self.dims)

    @property
    def is_fully_defined(self) -> bool:
        """True if every size is known."""
        return self.dims is not None and None not in self.dims

    @property
    def num_elements(self) -> int | None:
        """Number of elements, or None if a size is unknown."""
        return prod(self.as_list()) if self.is_fully_defined else None

    def as_list(self) -> list[int]:
        """Return the sizes of a fully known shape.

        Raises
        ------
        ShapeError
            A size is unknown.
        """
        if self.dims is None or None in self.dims:
            raise ShapeError(f"the shape {self} is not fully defined")
        return [d for d in self.dims if d is not None]

    def is_compatible_with(self, other: TensorShape) -> bool:
        """Return True if a fully known shape exists that matches both."""
        if self.dims is None or other.dims is None:
            return True
        return len(self.dims) == len(other.dims) and all(
            a is None or b is None or a == b for a, b in zip(self.dims, other.dims, strict=True)
        )

    def merge_with(self, other: TensorShape) -> TensorShape:
        """Return the shape with the known sizes of both.

        Raises
        ------
        ShapeError
            The shapes are incompatible.
        """
        if not self.is_compatible_with(other):
            raise ShapeError(f"the shapes {self} and {other} are not compatible")
        if self.dims is None or other.dims is None:
            return other if self.dims is None else self
        return TensorShape(b if a is None else a for a, b in zip(self.dims, other.dims, strict=True))

    def __len__(self) -> int:
        if self.dims is None:
            raise ShapeError("the rank is unknown")
        return len(self.dims)

    def __iter__(self) -> Iterator[Dim]:
        if self.dims is None:
            raise ShapeError("the rank is unknown")
        return iter(self.dims)

    @overload
    def __getitem__(self, key: int) -> Dim: ...
    @overload
    def __getitem__(self, key: slice) -> TensorShape: ...
    def __getitem__(self, key: int | slice) -> Dim | TensorShape:
        if self.dims is None:
            return TensorShape() if isinstance(key, slice) else None
        return TensorShape(self.dims[key]) if isinstance(key, slice) else self.dims[key]

    def __add__(self, other: TensorShape | Sequence[Dim]) -> TensorShape:
        rest = other.dims if isinstance(other, TensorShape) else tuple(other)
        return TensorShape() if self.dims is None or rest is None else TensorShape(self.dims + rest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorShape) and self.dims == other.dims

    def __hash__(self) -> int:
        return hash(self.dims)

    def __str__(self) -> str:
        if self.dims is None:
            return "<unknown>"
        return "[" + ",".join("?" if d is None else str(d) for d in self.dims) + "]"

    def __repr__(self) -> str:
        return f"TensorShape({None if self.dims is None else list(self.dims)})"


UNKNOWN = TensorShape()
SCALAR = TensorShape(())
