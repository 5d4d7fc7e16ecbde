"""Shapes of arguments and results as plain values, for the disk cache and for the launcher.

An array is written as in HLO, ``"f32[2,3]"``, a tuple is a list of its parts, a token is None. A program from the disk
cache runs with these alone, without its HLO being read and without the modules that could read it being imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cyxla.errors import InvalidArgumentError

if TYPE_CHECKING:
    from cyxla.types import Shape

PlainShape = str | list[Any] | None

# Types of NumPy itself; the table of all element types takes time to import.
_NUMPY_DTYPES = {
    "pred": "bool", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64",
    "c128": "complex128",
}  # fmt: skip


def to_plain(shape: Shape) -> PlainShape:
    """Return the plain value of a shape, without its layout."""
    if shape.is_tuple:
        return [to_plain(e) for e in shape.elements]
    if not shape.is_array:
        return None
    dims = ["<=" * is_dynamic + str(n) for n, is_dynamic in zip(shape.dims, shape.dynamic, strict=True)]
    return f"{shape.dtype.text}[{','.join(dims)}]"


def from_plain(plain: PlainShape) -> Shape:
    """Return the shape of a plain value."""
    from cyxla.types import TOKEN, Shape

    if plain is None:
        return TOKEN
    if isinstance(plain, str):
        dynamic = dynamic_dims(plain)
        dtype, dims = _split_array(without_bounds(plain))
        return Shape.array(dtype, dims, dynamic=[d in dynamic for d in range(len(dims))])
    return Shape.tuple([from_plain(e) for e in plain])


def dynamic_dims(array: str) -> tuple[int, ...]:
    """Return the dimensions of an array that are dynamic, as the first one of ``"f32[<=2,3]"``."""
    return tuple(d for d, size in enumerate(array.split(",")) if "<=" in size)


def without_bounds(plain: Any) -> Any:
    """Return a plain value with the bounds of dynamic dimensions as sizes."""
    if isinstance(plain, str):
        return plain.replace("<=", "")
    return [without_bounds(e) for e in plain] if isinstance(plain, list) else plain


def packed(plain: PlainShape) -> PlainShape:
    """Return a plain value with each dynamic array as a tuple of its padded array and its sizes."""
    if isinstance(plain, str):
        count = len(dynamic_dims(plain))
        return [without_bounds(plain), *["s32[]"] * count] if count else plain
    return [packed(e) for e in plain] if plain is not None else None


def arrays(plain: PlainShape) -> Iterator[str]:
    """Yield the arrays of a plain value, in order."""
    if isinstance(plain, str):
        yield plain
    for part in plain if isinstance(plain, list) else ():
        yield from arrays(part)


def has_tokens(plain: PlainShape) -> bool:
    """Return whether a plain value has a token."""
    return plain is None or (isinstance(plain, list) and any(map(has_tokens, plain)))


def dtype_and_dims(array: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return the NumPy dtype and the sizes of an array."""
    name, dims = _split_array(array)
    if name in _NUMPY_DTYPES:
        return np.dtype(_NUMPY_DTYPES[name]), dims
    from cyxla.types import element_type

    dtype = element_type(name).numpy_dtype
    assert dtype is not None
    return dtype, dims


def number_arrays(plains: Sequence[PlainShape]) -> list[Any]:
    """Return the consecutive numbers of the arrays of each plain value, nested as its tuples are.

    A token is an empty tuple.
    """
    count = 0

    def tree(plain: PlainShape) -> Any:
        nonlocal count
        if not isinstance(plain, str):
            return tuple([tree(e) for e in plain or ()])
        count += 1
        return count - 1

    return [tree(plain) for plain in plains]


def flatten(tree: Any, value: Any) -> list[tuple[int, Any]]:
    """Pair the numbers of a tree with the parts of a value.

    Raises
    ------
    InvalidArgumentError
        It is nested otherwise.
    """
    if isinstance(tree, int):
        return [(tree, value)]
    if not tree:
        return []
    if len(value) != len(tree):
        raise InvalidArgumentError(f"expected a tuple of {len(tree)} elements, got one of {len(value)}")
    return [pair for part, v in zip(tree, value, strict=True) for pair in flatten(part, v)]


def _split_array(array: str) -> tuple[str, tuple[int, ...]]:
    name, _, dims = array[:-1].partition("[")
    return name, tuple(map(int, dims.split(","))) if dims else ()
