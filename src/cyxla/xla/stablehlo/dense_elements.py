"""The elements of ``dense<...>``: numbers in brackets, a splat, or bytes as hex digits."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from cyxla.types import ElementType, Shape

Array = np.ndarray[Any, Any]
_BLANKS = re.compile(r"\s+|//[^\n]*")
_PAIR = re.compile(r"\(([^()]*),([^()]*)\)")
_MARKS = {c: None for c in range(128) if chr(c) not in "[],"}  # keeps the brackets and commas
_FLAT = {ord(c): None for c in "[]()"}
_WORDS = {"true": 1, "false": 0}
_HEX = re.compile(r"-?0[xX]")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?)?")
_FLOATS = re.compile(r"(?:-?+[0-9]++(?:\.[0-9]*+(?:[eE][-+]?+[0-9]++)?+)?+(?:,(?!\Z)|\Z))++")
_MAX_DIGITS = 4096  # digits of one number


class DenseError(ValueError):
    """Elements that do not fit their type."""


def elements_of(content: str, shape: Shape) -> Array:
    """Return the array of a dense attribute, of rank 0 for a splat.

    Parameters
    ----------
    content : str
        Text between ``<`` and ``>``.
    shape : Shape
        Type of the attribute.

    Raises
    ------
    DenseError
        The elements do not fit the type.
    """
    if shape.is_dynamic:
        raise DenseError("a constant needs a type of known sizes")
    content = content.strip()
    if content.startswith('"'):
        return from_bytes(_bytes_of(content[1:-1]), shape)
    text = _BLANKS.sub("", content)
    if not text:
        if shape.size:
            raise DenseError(f"no elements for {shape}")
        return np.zeros(shape.dims, shape.dtype.numpy_dtype)
    splat = not text.startswith("[")
    flat = text.translate(_FLAT)
    if not splat:
        _check_brackets(text, shape)
        if not shape.size and not flat.strip(","):
            return np.zeros(shape.dims, shape.dtype.numpy_dtype)
    array = _numbers(flat, shape.dtype)
    if splat and array.size != 1:
        raise DenseError(f"{array.size} elements without brackets")
    if not splat and array.size != shape.size:  # brackets without elements look like those of one
        raise DenseError(f"{array.size} elements for {shape}")
    return array.reshape(() if splat else shape.dims)


def _bytes_of(text: str) -> bytes:
    if text[:2].lower() != "0x":
        raise DenseError("strings cannot be elements of arrays")
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        raise DenseError("bytes of elements are hex digits") from None


def from_bytes(data: bytes, shape: Shape) -> Array:
    """Return elements from little-endian bytes: of all elements, or of a splat."""
    dtype = shape.dtype.numpy_dtype
    assert dtype is not None  # an array
    if shape.dtype is ElementType.PRED and len(data) not in (1, shape.size) and len(data) == (shape.size + 7) // 8:
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[: shape.size]
        return bits.astype(np.bool_).reshape(shape.dims)
    if len(data) not in (dtype.itemsize, shape.size * dtype.itemsize):
        raise DenseError(f"{len(data)} bytes for {shape} of {shape.size * dtype.itemsize}")
    if shape.dtype is ElementType.PRED:
        array: Array = np.frombuffer(data, np.uint8) != 0
    else:
        array = np.frombuffer(data, dtype.newbyteorder("<") if dtype.kind in "iufc" else dtype).astype(dtype)
    return array.reshape(shape.dims if array.size == shape.size else ())


def _check_brackets(text: str, shape: Shape) -> None:
    marks = _PAIR.sub("x", text) if shape.dtype.is_complex else text
    marks = marks.translate(_MARKS)
    expected = ""
    for n in reversed(shape.dims):
        if n * (len(expected) + 1) > len(marks):  # longer than the text, and maybe than memory
            expected = ""
            break
        expected = "[" + ",".join([expected] * n) + "]"
    if marks != expected:
        raise DenseError(f"the brackets do not fit {shape}")


def _numbers(flat: str, dtype: ElementType) -> Array:
    """Return the numbers between commas; the parts of a complex number follow each other."""
    if dtype.is_complex:
        parts = _numbers(flat, dtype.real_part)
        values: Array = parts.view(dtype.numpy_dtype) if parts.size % 2 == 0 else np.zeros(0)
        if not values.size:
            raise DenseError("a complex number is two in parentheses")
        return values
    if dtype.is_float and _FLOATS.fullmatch(flat):
        with np.errstate(over="ignore"):
            return np.fromstring(flat, np.float64, sep=",").astype(dtype.numpy_dtype)
    words = flat.split(",")
    if max(map(len, words)) > _MAX_DIGITS:
        raise DenseError("a number of too many digits")
    try:
        if dtype is ElementType.PRED:
            return np.array([_WORDS[w] if w in _WORDS else _bit(w) for w in words], np.bool_)
        return _floats(words, dtype) if dtype.is_float else _integers(words, dtype)
    except (ValueError, OverflowError) as e:
        raise e if isinstance(e, DenseError) else DenseError(f"an element is not of type {dtype}: {e}") from None


def _bit(word: str) -> int:
    value = int(word, 0)
    if value not in (0, 1, -1):
        raise DenseError(f"{word} is not a boolean")
    return abs(value)


def _floats(words: list[str], dtype: ElementType) -> Array:
    kind = dtype.numpy_dtype
    assert kind is not None  # a float
    values = np.empty(len(words), kind)
    bits = values.view(f"u{kind.itemsize}")
    with np.errstate(over="ignore"):
        for i, w in enumerate(words):
            if _HEX.match(w):
                bits[i] = int(w, 16)
            elif _NUMBER.fullmatch(w):
                values[i] = float(w)
            else:
                raise DenseError(f"{w[:40]!r} is not a number")
    return values


def _integers(words: list[str], dtype: ElementType) -> Array:
    values = [int(w, 0) if w[:1] != "0" or w[1:2] in "xX" else int(w) for w in words]
    if values and not in_range(min(values), max(values), dtype):
        raise DenseError(f"an element out of the range of {dtype}")
    if dtype.is_signed and values and max(values) >= 1 << (dtype.bits - 1):  # the bits of a signless integer
        values = [signed(v, dtype) for v in values]
    wide = np.array(values, np.uint64 if dtype.is_unsigned else np.int64)
    return wide.astype(dtype.numpy_dtype)


def in_range(least: int, most: int, dtype: ElementType) -> bool:
    """Return True if an integer type can hold `least` to `most`; a signless type holds signed and unsigned values."""
    bits = 1 if dtype is ElementType.PRED else dtype.bits
    return (0 if dtype.is_unsigned else -(1 << (bits - 1))) <= least and most < 1 << bits


def signed(value: int, dtype: ElementType) -> int:
    """Return the signed number with the bits of a signless integer."""
    return value - (1 << dtype.bits) if dtype.is_signed and value >= 1 << (dtype.bits - 1) else value
