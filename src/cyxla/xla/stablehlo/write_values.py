"""Text of types, constants and attributes in StableHLO."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.types import UNBOUNDED, ElementType, Literal, Shape

_NAMES = {"pred": "i1", "c64": "complex<f32>", "c128": "complex<f64>"}
_MIN_RESPECIALISED = 32  # elements that are written one by one


def element_name(dtype: ElementType) -> str:
    """Return the name of an element type: ``f32``, ``i8``, ``ui8``, ``f8E4M3FN``, ``complex<f64>``."""
    text = dtype.text
    if text in _NAMES:
        return _NAMES[text]
    if dtype.is_integer:
        return f"{'i' if dtype.is_signed else 'ui'}{dtype.bits}"
    return text if text in ("f16", "bf16", "f32", "f64") else text[:2] + text[2:].upper()


def type_of(shape: Shape) -> str:
    """Return the text of a type, with StableHLO's tuples."""
    if shape.is_tuple:
        return f"tuple<{', '.join(map(type_of, shape.elements))}>"
    if not shape.is_array:
        return "!stablehlo.token"
    if not shape.is_dynamic:
        return f"tensor<{''.join(f'{n}x' for n in shape.dims)}{element_name(shape.dtype)}>"
    sizes = ["?" if dynamic else str(n) for n, dynamic in zip(shape.dims, shape.dynamic, strict=True)]
    bounds = [
        str(n) if dynamic and n != UNBOUNDED else "?" for n, dynamic in zip(shape.dims, shape.dynamic, strict=True)
    ]
    encoding = f", #stablehlo.bounds<{', '.join(bounds)}>" if set(bounds) != {"?"} else ""
    return f"tensor<{''.join(f'{n}x' for n in sizes)}{element_name(shape.dtype)}{encoding}>"


def ints(values: Iterable[int]) -> str:
    """Return ``array<i64: 1, 2>``."""
    items = ", ".join(map(str, values))
    return f"array<i64: {items}>" if items else "array<i64>"


def flags(values: Iterable[bool]) -> str:
    """Return ``array<i1: true, false>``."""
    items = ", ".join(map(flag, values))
    return f"array<i1: {items}>" if items else "array<i1>"


def flag(value: Any) -> str:
    """Return ``true`` or ``false``."""
    return "true" if value else "false"


def number(value: int, bits: int = 64) -> str:
    """Return ``3 : i64``."""
    return f"{value} : i{bits}"


def word(kind: str, value: str) -> str:
    """Return ``#stablehlo<precision HIGH>``."""
    return f"#stablehlo<{kind} {value}>"


def brackets(values: Iterable[Any]) -> str:
    """Return ``[1, 2]``."""
    return f"[{', '.join(map(str, values))}]"


def record(kind: str, **fields: Any) -> str:
    """Return ``#stablehlo.gather<offset_dims = [1]>``; empty lists are omitted."""
    parts = [f"{k} = {brackets(v) if isinstance(v, (tuple, list)) else v}" for k, v in fields.items() if v != ()]
    return f"#stablehlo.{kind}<{', '.join(parts)}>"


def rows(values: Sequence[Sequence[int]], columns: int) -> str:
    """Return ``dense<[[1, 2]]> : tensor<1x2xi64>``."""
    body = brackets(brackets(row) for row in values) if values and columns else ""
    return f"dense<{body}> : tensor<{len(values)}x{columns}xi64>"


def quoted(text: str) -> str:
    """Return a string in quotes; bytes other than printable ASCII are two hex digits."""
    characters = (chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\{b:02X}" for b in text.encode())
    return f'"{"".join(characters)}"'


def dense(literal: Literal) -> str:
    """Return the text of a constant with its type."""
    if literal.is_tuple:
        raise UnimplementedError("a constant tuple has no form in StableHLO")
    return f"dense<{_elements(literal.array, literal.shape.dtype)}> : {type_of(literal.shape)}"


def _elements(array: np.ndarray[Any, Any], dtype: ElementType) -> str:
    if not array.size:
        return ""
    flat = np.ascontiguousarray(array).reshape(-1)
    raw = flat.view(np.uint8).reshape(flat.size, -1)
    if (raw == raw[0]).all():
        return _element(flat[0], dtype)
    if array.size > _MIN_RESPECIALISED and dtype is not ElementType.PRED and dtype.bits >= 8:
        return f'"0x{_little(flat).tobytes().hex().upper()}"'
    return _nested([_element(x, dtype) for x in flat], array.shape)


def _little(flat: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return flat.astype(flat.dtype.newbyteorder("<")) if flat.dtype.kind in "iufc" else flat


def _nested(words: list[str], dims: Sequence[int]) -> str:
    for size in reversed(dims):
        words = [brackets(words[k : k + size]) for k in range(0, len(words), size)]
    return words[0]


def _element(value: Any, dtype: ElementType) -> str:
    if dtype is ElementType.PRED:
        return flag(value)
    if dtype.is_complex:
        return f"({_real(value.real, dtype.real_part)}, {_real(value.imag, dtype.real_part)})"
    return str(int(value)) if dtype.is_integer else _real(value, dtype)


def _real(value: Any, dtype: ElementType) -> str:
    """Return the shortest decimal that parses to the same number; the bits if it is not finite."""
    kind = dtype.numpy_dtype
    assert kind is not None  # a float
    if not np.isfinite(np.float64(value)):
        bits = np.asarray(value, kind).view(f"u{kind.itemsize}")
        return f"0x{int(bits):0{2 * kind.itemsize}X}"
    exact = value if dtype in (ElementType.F32, ElementType.F16) else np.float64(value)
    return np.format_float_scientific(exact, unique=True, trim="0")
