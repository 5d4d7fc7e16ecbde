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

Outline = str | list[Any] | None

# What NumPy has itself; for the rest, the table of all element types is imported.
_NUMPY = {
    "pred": "bool", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64",
    "c128": "complex128",
}  # fmt: skip


def outline(shape: Shape) -> Outline:
    """Return the plain value of a static shape, without its layout."""
    if shape.is_tuple:
        return [outline(e) for e in shape.elements]
    return f"{shape.dtype.text}[{','.join(map(str, shape.dims))}]" if shape.is_array else None


def shape(form: Outline) -> Shape:
    """Return the shape of a plain value."""
    from cyxla.types import TOKEN, Shape

    if form is None:
        return TOKEN
    if isinstance(form, str):
        return Shape.array(*_parts(form))
    return Shape.tuple([shape(e) for e in form])


def arrays(form: Outline) -> Iterator[str]:
    """Yield the arrays of a plain value, in order."""
    if isinstance(form, str):
        yield form
    for part in form if isinstance(form, list) else ():
        yield from arrays(part)


def has_tokens(form: Outline) -> bool:
    """Return whether a plain value has a token."""
    return form is None or (isinstance(form, list) and any(map(has_tokens, form)))


def spec(array: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return the NumPy dtype and the sizes of an array."""
    text, dims = _parts(array)
    if text in _NUMPY:
        return np.dtype(_NUMPY[text]), dims
    from cyxla.types import element_type

    kind = element_type(text).numpy_dtype
    assert kind is not None
    return kind, dims


def trees(forms: Sequence[Outline]) -> list[Any]:
    """Return the consecutive numbers of the arrays of each plain value, nested as its tuples are.

    A token is an empty tuple.
    """
    count = 0

    def tree(form: Outline) -> Any:
        nonlocal count
        if not isinstance(form, str):
            return tuple([tree(e) for e in form or ()])
        count += 1
        return count - 1

    return [tree(form) for form in forms]


def flat(tree: Any, value: Any) -> list[tuple[int, Any]]:
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
        raise InvalidArgumentError(f"expected a tuple of {len(tree)}, got one of {len(value)}")
    return [pair for part, v in zip(tree, value, strict=True) for pair in flat(part, v)]


def _parts(array: str) -> tuple[str, tuple[int, ...]]:
    text, _, dims = array[:-1].partition("[")
    return text, tuple(map(int, dims.split(","))) if dims else ()
