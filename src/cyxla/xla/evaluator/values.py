"""Values of instructions: an array, a tuple of values, or a token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from cyxla.errors import InvalidArgumentError
from cyxla.memory import require
from cyxla.types import ElementType, Shape

Array: TypeAlias = npt.NDArray[Any]


class Token:
    """The value of a token: a singleton without content, `TOKEN_VALUE`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "token"


TOKEN_VALUE: Final = Token()
Value: TypeAlias = "Array | tuple[Value, ...] | Token"


def numpy_dtype(shape: Shape) -> np.dtype[Any]:
    """Return the NumPy dtype of arrays of this shape."""
    dtype = shape.dtype.numpy_dtype
    if dtype is None:
        raise InvalidArgumentError(f"{shape} is not the shape of an array")
    return dtype


def array_of(value: Value) -> Array:
    """Return the value, which must be an array."""
    if not isinstance(value, np.ndarray):
        raise InvalidArgumentError(f"expected an array, got a {type(value).__name__}")
    return value


def tuple_of(value: Value) -> tuple[Value, ...]:
    """Return the value, which must be a tuple."""
    if not isinstance(value, tuple):
        raise InvalidArgumentError(f"expected a tuple, got a {type(value).__name__}")
    return value


def zeros(shape: Shape) -> Value:
    """Return the value of a shape with every element zero."""
    if shape.is_tuple:
        return tuple(zeros(e) for e in shape.elements)
    return np.zeros(shape.dims, numpy_dtype(shape)) if shape.is_array else TOKEN_VALUE


def import_value(value: Any, shape: Shape) -> Value:
    """Convert a caller's argument for a parameter of this shape.

    Raises
    ------
    InvalidArgumentError
        The value does not have the shape.
    """
    if shape.is_tuple:
        if not isinstance(value, (tuple, list)) or len(value) != len(shape.elements):
            raise InvalidArgumentError(f"expected a tuple of {len(shape.elements)} for {shape}")
        return tuple(import_value(v, e) for v, e in zip(value, shape.elements, strict=True))
    if not shape.is_array:
        return TOKEN_VALUE
    array = np.asarray(value)
    if array.dtype != numpy_dtype(shape) or not fits(array.shape, shape):
        raise InvalidArgumentError(f"expected {shape}, got {array.dtype}{list(array.shape)}")
    return array.astype(numpy_dtype(shape), copy=False)


def export_value(value: Value) -> Value:
    """Return a value as new arrays in row-major order."""
    if isinstance(value, tuple):
        return tuple(map(export_value, value))
    if not isinstance(value, np.ndarray):
        return value
    require(value.nbytes)
    return np.array(value, order="C", copy=True)


def fits(dims: tuple[int, ...], shape: Shape) -> bool:
    """Return True if an array of these sizes has the shape; a dynamic dimension may be smaller than its bound."""
    if len(dims) != shape.rank:
        return False
    return all(
        d == expected or (is_dynamic and (expected < 0 or d < expected))
        for d, expected, is_dynamic in zip(dims, shape.dims, shape.dynamic, strict=True)
    )


class Written(np.ndarray[Any, Any]):
    """Array of the present sizes whose elements beyond them are known.

    Attributes
    ----------
    whole : array or None
        Array of the bounds; None for a part of such an array, whose elements beyond are zeros.
    """

    whole: Array | None = None

    @staticmethod
    def of(whole: Array, dims: Iterable[int]) -> Written:
        """Return the part of an array that has some sizes."""
        part = whole[tuple(map(slice, dims))].view(Written)
        part.whole = whole
        return part


def whole_of(x: Array) -> Array | None:
    """Return the array of the bounds, if its elements beyond the present sizes are known."""
    return x.whole if isinstance(x, Written) else None


def zero_extended(x: Array, dims: Iterable[int], shape: Shape) -> Array:
    """Return an array with zeros up to the bounds of some dimensions.

    Parameters
    ----------
    x : array
        Array of the present sizes.
    dims : iterable of int
        Dimensions to extend.
    shape : Shape
        Shape with the bounds.
    """
    sizes = list(x.shape)
    for d in dims:
        sizes[d] = shape.dims[d]
    if tuple(sizes) == x.shape or not shape.is_dynamic:
        return x
    result = np.full(sizes, np.asarray(0).astype(x.dtype))  # the nearest to zero that the type has
    result[tuple(map(slice, x.shape))] = x
    return result


def cut_to_common(a: Array, b: Array, pairs: Sequence[tuple[int, int]]) -> tuple[Array, Array]:
    """Cut pairs of dimensions of two arrays to the lesser of their present sizes."""
    of_a, of_b = [slice(None)] * a.ndim, [slice(None)] * b.ndim
    for i, j in pairs:
        of_a[i] = of_b[j] = slice(min(a.shape[i], b.shape[j]))
    return a[tuple(of_a)], b[tuple(of_b)]


def is_narrow_float(dtype: ElementType) -> bool:
    """Return True if arithmetic in this type is done in a wider one and rounded once."""
    return dtype.is_float and dtype.bits < 32
