"""Typed attributes of custom calls: a dictionary, as MLIR writes it, ``{axis = 1 : i32, scale = 2.0, name = "a"}``.

In Python, attributes of type i64 and f64 are an int and a float, other numbers scalars of NumPy, arrays one-dimensional
arrays of NumPy, types its dtypes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np

from cyxla.errors import DTypeError, InvalidArgumentError
from cyxla.types import from_numpy

TYPED_FFI: Final = "API_VERSION_TYPED_FFI"
SCALAR, STRING, ARRAY, DICTIONARY, DTYPE = range(1, 6)  # as in include/cyxla/call.h
_MOST_DEPTH: Final = 32
_DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "i1": np.dtype(bool), **{f"i{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)},
    **{f"si{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)},
    **{f"ui{n}": np.dtype(f"u{n // 8}") for n in (8, 16, 32, 64)},
    **{f"f{n}": np.dtype(f"f{n // 8}") for n in (16, 32, 64)}, "bf16": np.dtype(ml_dtypes.bfloat16),
}  # fmt: skip
_NAMES: Final = {dtype: name for name, dtype in reversed(_DTYPES.items()) if not name.startswith("si")}
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<number>-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?))(?![\w.])"""
    r"""|(?P<word>[A-Za-z_][\w.$]*)|(?P<mark>[{}\[\]<>=:,]))""", re.DOTALL,
)  # fmt: skip
_ESCAPE: Final = re.compile(rb'\\([0-9a-fA-F]{2}|[nt"\\])')
_ESCAPED: Final = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}


class Entry(NamedTuple):
    """Attribute as C functions read it.

    Attributes
    ----------
    name : bytes
        Name.
    kind : int
        Kind of value, such as `SCALAR`.
    dtype : int
        Number of the element type of a scalar or array, or of a dtype.
    size : int
        Number of elements, of bytes of a string, or of the entries of a dictionary.
    data : bytes or list of Entry
        Elements or text; the entries of a dictionary.
    """

    name: bytes
    kind: int
    dtype: int
    size: int
    data: bytes | list[Entry]


def is_typed(api_version: str, config: str | bytes | None) -> bool:
    """Return True if the configuration of a custom call is a dictionary of typed attributes."""
    return api_version == TYPED_FFI and _text(config).lstrip().startswith("{")


def _text(config: str | bytes | None) -> str:
    return config.decode(errors="replace") if isinstance(config, bytes) else config or ""


def entries(attributes: Mapping[str, Any]) -> list[Entry]:
    """Return attributes as C functions read them."""
    return [_entry(name.encode(), value) for name, value in attributes.items()]


def _entry(name: bytes, value: Any) -> Entry:
    if isinstance(value, Mapping):
        inner = entries(value)
        return Entry(name, DICTIONARY, 0, len(inner), inner)
    if isinstance(value, str):
        text = value.encode()
        return Entry(name, STRING, 0, len(text), text)
    if isinstance(value, np.dtype):
        return Entry(name, DTYPE, from_numpy(value).value, 1, b"")
    array = np.asarray(value)
    kind = ARRAY if array.ndim else SCALAR
    return Entry(name, kind, from_numpy(array.dtype).value, array.size, array.tobytes())


# -- writing


def text_of(attributes: Mapping[str, Any]) -> str:
    """Return attributes as text.

    Raises
    ------
    DTypeError
        The type of a value has no form.
    InvalidArgumentError
        A name is empty or holds a zero byte, or an integer does not fit 64 bits.
    """
    return "{" + ", ".join(f"{_name_text(name)} = {_value_text(v, name)}" for name, v in attributes.items()) + "}"


def _name_text(name: Any) -> str:
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidArgumentError(f"{name!r} cannot be the name of an attribute")
    return name if re.fullmatch(r"[A-Za-z_][\w.$]*", name, re.ASCII) else _quoted(name)


def _quoted(text: str) -> str:
    parts = [chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode()]
    return '"' + "".join(parts) + '"'


def _value_text(value: Any, name: str) -> str:
    if isinstance(value, Mapping):
        return text_of(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, (np.dtype, type)):
        return _type_text(np.dtype(value), name)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    array = np.asarray(value)
    dtype = _type_text(array.dtype, name)
    if array.ndim == 0:
        return f"{_number_text(array[()])} : {dtype}"
    if array.ndim > 1:
        raise DTypeError(f"attribute {name} is an array of rank {array.ndim}", hint="pass it flat, or as an argument")
    numbers = [("true" if x else "false") if array.dtype.kind == "b" else _number_text(x) for x in array]
    return f"array<{dtype}{': ' if numbers else ''}{', '.join(numbers)}>"


def _type_text(dtype: np.dtype[Any], name: str) -> str:
    text = _NAMES.get(dtype.newbyteorder("="))
    if text is None:
        raise DTypeError(
            f"attribute {name} has dtype {dtype}",
            hint="use bools, integers, floats, texts, arrays of numbers and dicts",
        )
    return text


def _number_text(value: Any) -> str:
    """Return the text of a number; floats that are not finite are written as their bits."""
    if value.dtype.kind in "iu":
        return str(int(value))
    if math.isfinite(float(value)):  # np.isfinite warns of signalling NaNs of narrow types
        text = repr(float(value))
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    return hex(int(value.view(f"u{value.dtype.itemsize}")))


# -- reading


def read_attributes(config: str | bytes | None) -> dict[str, Any]:
    """Return the attributes of a text.

    Raises
    ------
    InvalidArgumentError
        The text is no dictionary of typed attributes.
    """
    copied: dict[str, Any] = _copy(_read(_text(config)))
    return copied


@lru_cache(maxsize=512)  # each run of a custom call in Python reads them
def _read(text: str) -> dict[str, Any]:
    return _Reader(text).read()


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(v) for key, v in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value


class _Reader:
    """Reader of one text."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0

    def read(self) -> dict[str, Any]:
        """Return the dictionary that the text is."""
        found = self.dictionary()
        if self.text[self.at :].strip():
            self.fail("the end")
        return found

    def dictionary(self) -> dict[str, Any]:
        """Return the dictionary that follows."""
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise InvalidArgumentError(f"attributes are nested more than {_MOST_DEPTH} deep")
        self.expect("{")
        found: dict[str, Any] = {}
        if not self.take("}"):
            while True:
                name = self.name()
                if name in found:
                    raise InvalidArgumentError(f"attribute {name[:80]} is given twice")
                found[name] = self.value() if self.take("=") else True
                if not self.take(","):
                    break
            self.expect("}")
        self.depth -= 1
        return found

    def name(self) -> str:
        """Return the name that follows."""
        kind, text = self.next("a name")
        name = text if kind == "word" else _unquoted(text) if kind == "string" else self.fail("a name")
        if not name or "\0" in name:
            self.fail("a name")
        return name

    def value(self) -> Any:
        """Return the value that follows."""
        kind, text = self.peek()
        if text == "{":
            return self.dictionary()
        self.next("a value")
        if kind == "string":
            return _unquoted(text)
        if text in ("true", "false"):
            return text == "true"
        if kind == "number":
            integer = re.fullmatch(r"-?(?:\d+|0x[0-9a-fA-F]+)", text) is not None
            dtype = self.dtype() if self.take(":") else _DTYPES["i64" if integer else "f64"]
            return _plain(self.number(text, dtype))
        if text == "array":
            return self.array()
        return _DTYPES[text] if text in _DTYPES else self.fail("a value")

    def array(self) -> np.ndarray[Any, Any]:
        """Return the array whose type and elements follow."""
        self.expect("<")
        dtype = self.dtype()
        numbers = []
        if self.take(":"):
            while True:
                kind, text = self.next("a number")
                if kind != "number" and text not in ("true", "false"):
                    self.fail("a number")
                numbers.append(self.number(text, dtype))
                if not self.take(","):
                    break
        self.expect(">")
        return np.array(numbers, dtype)

    def dtype(self) -> np.dtype[Any]:
        """Return the type that follows."""
        return _DTYPES.get(self.next("a type")[1]) or self.fail("a type of numbers, such as i64 or f32")

    def number(self, text: str, dtype: np.dtype[Any]) -> Any:
        """Return a number of a type; hexadecimal digits are the bits of a float."""
        if text in ("true", "false"):
            return dtype.type(text == "true") if dtype.kind == "b" else self.fail(f"a number of type {_NAMES[dtype]}")
        is_hex = "0x" in text
        if dtype.kind in "biu":
            if not is_hex and not text.lstrip("-").isdigit():
                self.fail(f"an integer of type {_NAMES[dtype]}")
            return self.integer(int(text, 16 if is_hex else 10), dtype)
        if is_hex:
            bits = np.dtype(f"u{dtype.itemsize}")
            return self.integer(int(text, 16), bits).view(dtype)
        with np.errstate(over="ignore"):
            return np.asarray(float(text)).astype(dtype)[()]

    def integer(self, value: int, dtype: np.dtype[Any]) -> Any:
        """Return an integer of a type that it fits."""
        low, high = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
        if not low <= value <= high:
            raise InvalidArgumentError(f"attribute {str(value)[:40]} does not fit type {_NAMES[dtype]}")
        return dtype.type(value)

    # -- tokens

    def peek(self) -> tuple[str, str]:
        """Return kind and text of the next token, which is not taken."""
        match = _TOKEN.match(self.text, self.at)
        return ("", "") if match is None else (str(match.lastgroup), match[str(match.lastgroup)])

    def next(self, expected: str) -> tuple[str, str]:
        """Take the next token."""
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            self.fail(expected)
        assert match is not None
        self.at = match.end()
        return str(match.lastgroup), match[str(match.lastgroup)]

    def take(self, mark: str) -> bool:
        """Take a mark if it follows."""
        if self.peek() != ("mark", mark):
            return False
        self.next(mark)
        return True

    def expect(self, mark: str) -> None:
        """Take a mark."""
        if not self.take(mark):
            self.fail(f"'{mark}'")

    def fail(self, expected: str) -> Any:
        """Raise the error of a text that is not as expected."""
        found = self.text[self.at : self.at + 20]
        raise InvalidArgumentError(
            f"attributes of a custom call: expected {expected} at character {self.at}, before {found!r}",
            hint='such as {axis = 1 : i32, scale = 2.0 : f32, name = "a", sizes = array<i64: 1, 2>}',
        )  # fmt: skip


def _plain(value: Any) -> Any:
    """Return numbers of type i64, f64 and i1 as Python's."""
    return value.item() if value.dtype in (np.int64, np.float64, np.bool_) else value


def _unquoted(text: str) -> str:
    replace: Callable[[re.Match[bytes]], bytes] = lambda m: _ESCAPED.get(m[1]) or bytes([int(m[1], 16)])  # noqa: E731
    return _ESCAPE.sub(replace, text[1:-1].encode()).decode(errors="replace")
