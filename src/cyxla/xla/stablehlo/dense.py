"""The elements of ``dense<...>``: numbers in brackets, one number for all, or bytes as hex digits."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from cyxla.types import ElementType, Shape

Array = np.ndarray[Any, Any]
_BLANKS = re.compile(r"\s+|//[^\n]*")
_PAIR = re.compile(r"\(([^()]*),([^()]*)\)")
_ELEMENT = re.compile(r"[^\[\],]+")
_BRACKETS = re.compile(r"[\[\]]")
_WORDS = {"true": 1, "false": 0}
_HEX = re.compile(r"-?0[xX]")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?)?")
_LONGEST = 4096  # digits of one number


class DenseError(ValueError):
    """Elements that do not fit their type."""


def elements_of(content: str, shape: Shape) -> Array:
    """The array that a dense attribute stands for; of rank 0 where all elements are one.

    Parameters
    ----------
    content : str
        What stands between ``<`` and ``>``.
    shape : Shape
        Its type.

    Raises
    ------
    DenseError
        They do not fit.
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
    flat = _PAIR.sub(r"\1;\2", text) if shape.dtype.is_complex else text
    splat = not flat.startswith("[")
    if not splat:
        _check_brackets(flat, shape)
    words = [w for w in _BRACKETS.sub("", flat).split(",") if w]
    array = _numbers(words, shape.dtype)
    if splat:
        if len(words) != 1:
            raise DenseError(f"{len(words)} elements without brackets")
        return array.reshape(())
    return array.reshape(shape.dims)


def _bytes_of(text: str) -> bytes:
    if text[:2].lower() != "0x":
        raise DenseError("strings are no elements of arrays")
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        raise DenseError("bytes of elements are hex digits") from None


def from_bytes(data: bytes, shape: Shape) -> Array:
    """Elements from little-endian bytes: of all of them, or of one for all."""
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
    wanted = "x"
    for n in reversed(shape.dims):
        wanted = "[" + ",".join([wanted] * n) + "]"
        if len(wanted) > 2 * len(text) + 2:
            break
    if _ELEMENT.sub("x", text) != wanted:
        raise DenseError(f"the brackets do not fit {shape}")


def _numbers(words: list[str], dtype: ElementType) -> Array:
    if max(map(len, words), default=0) > _LONGEST:
        raise DenseError("a number of too many digits")
    try:
        if dtype.is_complex:
            parts = [_numbers([w.partition(";")[k] or "?" for w in words], dtype.real_part) for k in (0, 2)]
            return _complex(parts, dtype)
        if dtype is ElementType.PRED:
            return np.array([_WORDS[w] if w in _WORDS else _bit(w) for w in words], np.bool_)
        return _floats(words, dtype) if dtype.is_float else _integers(words, dtype)
    except (KeyError, ValueError, OverflowError) as e:
        raise e if isinstance(e, DenseError) else DenseError(f"an element that is no {dtype}: {e}") from None


def _complex(parts: list[Array], dtype: ElementType) -> Array:
    found = np.empty(parts[0].shape, dtype.numpy_dtype)
    found.real, found.imag = parts
    return found


def _bit(word: str) -> int:
    value = int(word, 0)
    if value not in (0, 1, -1):
        raise DenseError(f"{word} is no boolean")
    return abs(value)


def _floats(words: list[str], dtype: ElementType) -> Array:
    kind = dtype.numpy_dtype
    assert kind is not None  # a float
    if not any(w[1:2] in "xX" or w[1:3] == "0x" for w in words):
        for w in words:
            if not _NUMBER.fullmatch(w):
                raise DenseError(f"{w[:40]!r} is no number")
        with np.errstate(over="ignore"):
            return np.array(words, np.float64).astype(kind)
    found = np.empty(len(words), kind)
    bits = found.view(f"u{kind.itemsize}")
    for i, w in enumerate(words):
        if _HEX.match(w):
            bits[i] = int(w, 16)
        else:
            found[i] = float(w)
    return found


def _integers(words: list[str], dtype: ElementType) -> Array:
    values = [int(w, 0) if w[:1] != "0" or w[1:2] in "xX" else int(w) for w in words]
    least = 0 if dtype.is_unsigned else -(1 << (dtype.bits - 1))
    if values and not (least <= min(values) and max(values) < 1 << dtype.bits):
        raise DenseError(f"an element out of the range of {dtype}")
    if dtype.is_signed and values and max(values) >= 1 << (dtype.bits - 1):  # the bits of a signless integer
        values = [v - (1 << dtype.bits) if v >= 1 << (dtype.bits - 1) else v for v in values]
    wide = np.array(values, np.uint64 if dtype.is_unsigned else np.int64)
    return wide.astype(dtype.numpy_dtype)
