"""Tensors as text, in the formats of Print, Assert and StringFormat."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_DIGITS = {8: (15, 17), 16: (15, 17)}  # by item size of a real number: digits for reading, and digits that round-trip
_ESCAPES = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}


def number_text(value: float, digits: tuple[int, int], dtype: Any) -> str:
    """Format a float with few digits if they round-trip, else with more."""
    text = f"{value:.{digits[0]}g}"
    return text if value != value or dtype(text) == dtype(value) else f"{value:.{digits[1]}g}"


def _float_text(value: Any, dtype: np.dtype[Any]) -> str:
    wide = np.float64 if dtype.itemsize == 8 else np.float32
    return number_text(float(value), _DIGITS.get(dtype.itemsize, (6, 9)), wide)


def element_text(value: Any, dtype: np.dtype[Any], quoted: bool = False) -> str:
    """Format one element; booleans become 0 and 1."""
    if isinstance(value, bytes):
        return f'"{_escape(value)}"' if quoted else value.decode(errors="replace")
    if dtype.kind == "c":
        part = np.dtype(np.float64 if dtype.itemsize == 16 else np.float32)
        return f"({_float_text(value.real, part)},{_float_text(value.imag, part)})"
    if dtype.kind in "fV":
        return _float_text(value, dtype)
    return str(int(value)) if dtype.kind == "b" else str(value)


def _escape(value: bytes) -> str:
    return "".join(_ESCAPES.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in value)


def summary(x: Array, most: int) -> str:
    """Format the first elements of an array, or all of them if `most` is negative."""
    flat = x.reshape(-1)
    shown = flat if most < 0 else flat[:most]
    texts = [element_text(v, x.dtype) for v in shown]
    return "[" + " ".join(texts) + ("..." if len(shown) < len(flat) else "") + "]"


def nested_text(x: Array, ends: int) -> str:
    """Format an array with nested brackets: `ends` elements at both ends of a dimension, or all if negative."""
    return _nested_text(x, ends if ends >= 0 else max(x.shape, default=0), 0)


def _nested_text(x: Array, ends: int, depth: int) -> str:
    if not x.ndim:
        return element_text(x[()], x.dtype, quoted=True)
    count = len(x)
    parts = [_nested_text(x[i, ...], ends, depth + 1) for i in range(min(ends, count))]
    parts += ["..."] * (count > 2 * ends)
    parts += [_nested_text(x[i, ...], ends, depth + 1) for i in range(max(ends, count - ends), count)]
    return f"[{_separator(x.ndim, depth).join(parts)}]"


def _separator(rest: int, depth: int) -> str:
    return " " if rest == 1 else "\n" * (rest - 1) + " " * (depth + 1)
