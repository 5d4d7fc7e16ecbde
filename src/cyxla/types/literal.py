"""Literals: constant values, held as read-only arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.hashing import blake2b
from cyxla.types.shape import Shape


class Literal:
    """A constant: one read-only array, or a tuple of literals.

    All bits of the value are kept, including NaN payloads.

    Attributes
    ----------
    shape : Shape
        Static shape of the value, without a layout.
    array : numpy.ndarray
        Read-only row-major array of the value; accessing it raises `ShapeError` for a tuple.
    elements : tuple of Literal
        Elements of a tuple.
    """

    __slots__ = ("_array", "_digest", "elements", "shape")

    shape: Shape

    def __init__(self, value: Any, shape: Shape | None = None) -> None:
        self._digest: bytes | None = None
        self.elements: tuple[Literal, ...] = ()
        self._array: np.ndarray[Any, Any] | None = None
        if isinstance(value, tuple):
            self.elements = tuple(v if isinstance(v, Literal) else Literal(v) for v in value)
            self.shape = Shape.tuple([e.shape for e in self.elements])
        else:
            self.shape, self._array = _freeze(value, shape)

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The value of an array literal."""
        if self._array is None:
            raise ShapeError(f"a tuple literal {self.shape} is not an array")
        return self._array

    @property
    def is_tuple(self) -> bool:
        """True for a tuple of literals."""
        return self._array is None

    def digest(self) -> bytes:
        """Return 16 bytes that are equal for bitwise equal literals of the same shape."""
        if self._digest is None:
            h = blake2b(str(self.shape).encode(), digest_size=16)
            for part in self.elements:
                h.update(part.digest())
            if self._array is not None:
                h.update(self._array.tobytes())
            self._digest = h.digest()
        return self._digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and (self is other or self.digest() == other.digest())

    def __hash__(self) -> int:
        return hash(self.digest())

    def __repr__(self) -> str:
        return f"Literal({self.shape})"


def _freeze(value: Any, shape: Shape | None) -> tuple[Shape, np.ndarray[Any, Any]]:
    try:
        array = np.array(value, dtype=shape.dtype.numpy_dtype if shape else None, order="C", copy=True)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidArgumentError(f"a literal{f' of {shape}' if shape else ''} cannot hold this: {error}") from None
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if shape is not None and array.shape != shape.dims:
        raise ShapeError(f"a literal of {shape} got an array of shape {array.shape}")
    array.flags.writeable = False
    return shape.static if shape is not None else Shape.of(array), array
