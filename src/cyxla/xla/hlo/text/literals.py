"""Parser and printer of literals.

Numbers are read as in XLA: as a double that is then rounded to the type. The printer emits the shortest decimal that
reads back to the same bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from cyxla.errors import HloParseError
from cyxla.types import ElementType, Kind, Literal, Shape
from cyxla.xla.hlo.limits import MAX_RANK
from cyxla.xla.hlo.text.lexer import WS, Cursor, Pattern

_MAX_ELIDED_BYTES = 2**28
_MANTISSA = {ElementType.F16: 10, ElementType.BF16: 7, ElementType.F32: 23, ElementType.F64: 52}
_MANTISSA |= {ElementType.F8E5M2: 2, ElementType.F8E4M3: 3, ElementType.F8E3M4: 4}  # types with NaN payloads
_ONE_NAN = {ElementType.F8E4M3FN: 0x7F, ElementType.F8E8M0FNU: 0xFF}
_ONE_NAN |= dict.fromkeys((ElementType.F8E4M3B11FNUZ, ElementType.F8E5M2FNUZ, ElementType.F8E4M3FNUZ), 0x80)
_SIGNED_NAN = {ElementType.F8E4M3FN}

_DECIMAL = r"-?+[0-9]++(?:\.[0-9]*+)?+(?:[eE][+-]?+[0-9]++)?+"
_REAL = rf"-?nan(?:\(0x[0-9a-fA-F]++\))?+|-?inf|{_DECIMAL}"
_NUMBER = rf"{_REAL}|true|false"
_VALUE = Pattern(rf"({_NUMBER})(?![\w.])")
_COMPLEX = Pattern(rf"\({WS}({_REAL}){WS},{WS}({_REAL}){WS}\)")
_PART = Pattern(rf"({_REAL})(?![\w.])")
_SCALAR = Pattern(rf"({_NUMBER})(?![\w.])")
_SCALAR_COMPLEX = Pattern(rf"(\({WS}(?:{_REAL}){WS},{WS}(?:{_REAL}){WS}\))")
_ROW = Pattern(r"\{([^{}]*+)\}")
_ELIDED = Pattern(rf"\{{{WS}\.\.\.{WS}\}}")
_PLAIN_FLOATS = re.compile(rf"(?:{WS}{_DECIMAL}{WS},)*+", re.ASCII)
_PLAIN_INTEGERS = re.compile(rf"(?:{WS}-?+[0-9]{{1,20}}{WS},)*+", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_NAN = re.compile(r"(-?)nan(?:\(0x([0-9a-fA-F]+)\))?")


class _Row(NamedTuple):
    """The text in the innermost braces of an array literal, and its position."""

    text: str
    at: int


def read_literal(c: Cursor, shape: Shape) -> Literal:
    """Read a literal of a given shape.

    Raises
    ------
    HloParseError
        The text is not such a literal, or a number does not fit the element type.
    """
    if shape.is_tuple:
        return _read_tuple(c, shape)
    if not shape.is_array:
        raise c.error(f"constants of {shape} are not supported")
    return _read_array(c, shape.static)


def _read_tuple(c: Cursor, shape: Shape) -> Literal:
    if c.match(_ELIDED):
        return Literal(tuple(_elided_any(c, e) for e in shape.elements))
    c.enter()
    c.expect("(", f"at the start of a literal of {shape}")
    parts = []
    for i, element in enumerate(shape.elements):
        if i:
            c.expect(",", f"after element {i - 1} of a tuple literal")
        parts.append(read_literal(c, element))
    c.expect(")", f"at the end of a literal of {shape}")
    c.leave()
    return Literal(tuple(parts))


def _read_array(c: Cursor, shape: Shape) -> Literal:
    if shape.rank > MAX_RANK:
        raise c.error(f"a literal of {shape.rank} dimensions; {MAX_RANK} is the limit")
    if shape.rank and c.match(_ELIDED):
        return _elided(c, shape)
    rows = list(_rows(c, shape)) if shape.rank else [_scalar(c, shape.dtype)]
    values = _Values(c, shape, rows).read()
    return Literal(values.reshape(shape.dims), shape)


def _elided_any(c: Cursor, shape: Shape) -> Literal:
    if shape.is_tuple:
        return Literal(tuple(_elided_any(c, e) for e in shape.elements))
    if not shape.is_array:
        raise c.error(f"constants of {shape} are not supported")
    return _elided(c, shape.static)


def _elided(c: Cursor, shape: Shape) -> Literal:
    """Return zeros for ``{...}``, a constant whose values were elided."""
    c.elided += shape.nbytes
    if c.elided > _MAX_ELIDED_BYTES:
        raise c.error(
            f"elided constants, {shape} the last, have more than {_MAX_ELIDED_BYTES >> 20} MiB, which is the limit",
            hint="print the program with the values of its constants",
        )
    return Literal(np.zeros(shape.dims, shape.dtype.numpy_dtype), shape)


def _scalar(c: Cursor, dtype: ElementType) -> _Row:
    m = c.match(_SCALAR_COMPLEX if dtype.is_complex else _SCALAR)
    if m is None:
        raise (
            _bad_complex(c)
            if dtype.is_complex
            else c.error(f"expected a value of type {dtype}, found {c.next_token()}")
        )
    return _Row(m.group(1), m.start(1))


def _bad_complex(c: Cursor) -> HloParseError:
    c.expect("(", "before the parts of a complex number")
    for follows in (",", ")"):
        if c.match(_PART) is None:
            break
        c.expect(follows, "in a complex number (re, im)")
    return c.error(f"expected a part of a complex number, found {c.next_token()}")


def _rows(c: Cursor, shape: Shape) -> Iterator[_Row]:
    """Yield the innermost rows, after a check of the braces around them."""
    dims, is_empty = shape.dims, shape.size == 0
    counts: list[int] = []
    while True:
        start = c.skip()
        if len(counts) < shape.rank - 1 or is_empty:
            c.expect("{", f"at nesting level {len(counts) + 1} of a literal of {shape}")
            counts.append(0)
            if not (is_empty and c.at("}")):
                if len(counts) == shape.rank and is_empty:
                    raise c.error(f"expected '}}': {shape} has no elements")
                continue
            c.accept("}")
            counts.pop()
        else:
            m = c.match(_ROW)
            if m is None:
                raise _bad_row(c, shape)
            yield _Row(m.group(1), m.start(1))
        while counts:
            counts[-1] += 1
            level, expected = len(counts), dims[len(counts) - 1]
            if counts[-1] > expected:
                raise c.error(f"more than {expected} parts at nesting level {level} of {shape}", start)
            if c.accept(","):
                break
            if counts[-1] != expected:
                raise c.error(f"{counts[-1]} parts, not {expected}, at nesting level {level} of {shape}")
            c.expect("}", f"at nesting level {len(counts)} of a literal of {shape}")
            counts.pop()
        else:
            return


def _bad_row(c: Cursor, shape: Shape) -> HloParseError:
    if c.accept("{"):
        c.match(re.compile(r"[^{}]*"))
        return c.error(f"a literal of {shape} nests {shape.rank} deep, found {c.next_token()}")
    return c.error(f"expected '{{' at nesting level {shape.rank} of a literal of {shape}, found {c.next_token()}")


class _Values:
    """Parser of the numbers of all rows into one flat array."""

    def __init__(self, c: Cursor, shape: Shape, rows: Sequence[_Row]) -> None:
        self.c, self.rows, self.dtype = c, rows, shape.dtype
        self.width = shape.dims[-1] if shape.rank else 1
        self.text = ",".join([r.text for r in rows])
        self.count = len(rows) * self.width
        self.shape = shape

    def read(self) -> np.ndarray[Any, Any]:
        if not self.count:
            return np.zeros(0, self.dtype.numpy_dtype)
        if self.dtype.is_complex:
            return self._complex()
        if self.dtype.is_float:
            return self._floats()
        if self.dtype.kind is Kind.PRED:
            return np.array([t == "true" or (t != "false" and int(t) != 0) for t in self._tokens("pred")], np.bool_)
        return self._integers()

    def _complex(self) -> np.ndarray[Any, Any]:
        tokens: list[str] = []
        positions: list[int] = []
        for row in self.rows:
            for m in self._matches(row, _COMPLEX, "a complex number (re, im)"):
                tokens += m.groups()
                positions += (m.start(1), m.start(2))
        parts = self._rounded(tokens, self.dtype.real_part, positions)
        return parts.view(_numpy(self.dtype))

    def _floats(self) -> np.ndarray[Any, Any]:
        if _PLAIN_FLOATS.fullmatch(self.text + ","):
            self._check_widths()
            wide = _doubles(self.text.split(","))
            return self._round_checked(wide, np.bool_(True), self.dtype, None)
        return self._rounded(self._tokens("float"), self.dtype, None)

    def _rounded(
        self, tokens: Sequence[str], dtype: ElementType, positions: Sequence[int] | None
    ) -> np.ndarray[Any, Any]:
        """Round tokens to a float type; NaNs are set by their bits."""
        special = [t[-1] in "fn)" for t in tokens]
        wide = _doubles(["0" if t[-1] in "n)" else t for t in tokens])
        low = self._round_checked(wide, ~np.array(special), dtype, positions)
        bits = low.view(f"u{low.dtype.itemsize}")
        for i, token in enumerate(tokens):
            if special[i] and token[-1] != "f":
                bits[i] = self._nan_bits(token, dtype, i, positions)
        return low

    def _round_checked(
        self,
        wide: np.ndarray[Any, Any],
        finite: np.ndarray[Any, Any] | np.bool_,
        dtype: ElementType,
        positions: Sequence[int] | None,
    ) -> np.ndarray[Any, Any]:
        """Round doubles; values written as finite must stay finite."""
        low = round_to(wide, dtype)
        with np.errstate(all="ignore"):
            overflowed = finite & ~(np.isfinite(wide) & np.isfinite(low.astype(np.float64)))
        if dtype is ElementType.F8E8M0FNU:
            overflowed |= finite & (wide <= 0)
        if overflowed.any():
            i = int(np.flatnonzero(overflowed)[0])
            raise self.c.error(f"number is out of range for {dtype}", self._position(i, positions))
        return low

    def _nan_bits(self, token: str, dtype: ElementType, i: int, positions: Sequence[int] | None) -> int:
        m = _NAN.fullmatch(token)
        if m is None or (m.group(2) and dtype not in _MANTISSA):
            fault = f"{dtype} has no NaN payloads" if m else f"{token!r} is not a number"
            raise self.c.error(fault, self._position(i, positions))
        payload = int(m.group(2), 16) if m.group(2) and len(m.group(2)) <= 16 else None
        if m.group(2) and (payload is None or not 0 < payload < 2 ** _MANTISSA[dtype]):
            raise self.c.error(f"NaN payload does not fit {dtype}", self._position(i, positions))
        return nan_bits(dtype, bool(m.group(1)), payload)

    def _integers(self) -> np.ndarray[Any, Any]:
        if _PLAIN_INTEGERS.fullmatch(self.text + ","):
            self._check_widths()
            values = list(map(int, self.text.split(",")))
        else:
            values = [int(t) for t in self._tokens("integer")]
        low, high = integer_range(self.dtype)
        if self.dtype is ElementType.U64:
            low = -(2**63)  # XLA reads two's complement as well
        if min(values) < low or max(values) > high:
            i = next(i for i, v in enumerate(values) if not low <= v <= high)
            raise self.c.error(f"{values[i]} is out of range for {self.dtype}", self._position(i, None))
        if self.dtype is ElementType.U64:
            return np.array([v % 2**64 for v in values], np.uint64)
        return np.array(values, np.int64).astype(_numpy(self.dtype))

    def _check_widths(self) -> None:
        for row in self.rows:
            width = row.text.count(",") + 1
            if width != self.width:
                raise self._bad_width(row, width)

    def _bad_width(self, row: _Row, width: int) -> HloParseError:
        at = row.at + len(row.text)
        if width > self.width and not self.dtype.is_complex:
            extra = ",".join(row.text.split(",")[self.width :])
            at -= len(extra.lstrip())
        return self.c.error(f"{width} elements in a row of {self.width} of a literal of {self.shape}", at)

    def _tokens(self, description: str) -> list[str]:
        tokens: list[str] = []
        for row in self.rows:
            for m in self._matches(row, _VALUE, f"a number of type {self.dtype}"):
                token = m.group(1)
                is_bool = token in ("true", "false")
                fits = (
                    not is_bool
                    if description == "float"
                    else _INTEGER.fullmatch(token) or (description == "pred" and is_bool)
                )
                if not fits:
                    raise self.c.error(f"{token[:40]!r} is not a value of {self.dtype}", m.start(1))
                tokens.append(token)
        return tokens

    def _matches(self, row: _Row, pattern: Pattern, description: str) -> list[re.Match[str]]:
        """Return the matches that fill a row, with commas between them."""
        c = Cursor(self.c.text)
        c.pos, end, matches = row.at, row.at + len(row.text), []
        while True:
            m = c.match(pattern)
            if m is None and self.dtype.is_complex:
                raise _bad_complex(c)
            if m is None or m.end() > end:
                raise c.error(f"expected {description}, found {c.next_token()}", c.skip() if m is None else row.at)
            matches.append(m)
            if c.skip() >= end:
                break
            c.expect(",", f"between elements of a literal of {self.shape}")
        if len(matches) != self.width:
            raise self._bad_width(row, len(matches))
        return matches

    def _position(self, i: int, positions: Sequence[int] | None) -> int:
        """Return the position of element `i`."""
        if positions is not None:
            return positions[i]
        row, k = self.rows[i // self.width], i % self.width
        before = row.text.split(",")[: k + 1]
        at = row.at + len(",".join(before)) - len(before[-1])
        return at + len(before[-1]) - len(before[-1].lstrip())


def _doubles(tokens: Sequence[str]) -> np.ndarray[Any, Any]:
    """Return the tokens as doubles; ``-0`` without a point is an integer in XLA, hence 0."""
    wide = np.array(list(map(float, tokens)))
    for i in np.flatnonzero((wide == 0) & np.signbit(wide)).tolist():
        if not tokens[i].strip(" \t\r\n-0"):
            wide[i] = 0.0
    return wide


def _numpy(dtype: ElementType) -> np.dtype[Any]:
    assert dtype.numpy_dtype is not None
    return dtype.numpy_dtype


def round_to(wide: np.ndarray[Any, Any], dtype: ElementType) -> np.ndarray[Any, Any]:
    """Round doubles to a float type; narrow types go through single precision, as in XLA."""
    target = _numpy(dtype)
    with np.errstate(all="ignore"):
        if target.itemsize >= 4:
            return wide.astype(target)
        return wide.astype(np.float32).astype(target)


def integer_range(dtype: ElementType) -> tuple[int, int]:
    """Return the least and greatest value of an integer type."""
    if dtype.is_unsigned:
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


def nan_bits(dtype: ElementType, negative: bool, payload: int | None) -> int:
    """Return the bits of a NaN, by default a quiet one."""
    if dtype not in _MANTISSA:
        return _ONE_NAN.get(dtype, 0) | (0x80 if negative and dtype in _SIGNED_NAN else 0)
    mantissa = _MANTISSA[dtype]
    exponent: int = (2 ** (dtype.bits - 1 - mantissa) - 1) << mantissa
    sign = int(negative) << (dtype.bits - 1)
    return sign | exponent | (payload if payload is not None else 1 << (mantissa - 1))


def literal_text(literal: Literal) -> str:
    """Return the text of a literal in ``constant(..)``."""
    if literal.is_tuple:
        return "( " + ", ".join(map(literal_text, literal.elements)) + " )" if literal.elements else "()"
    shape = literal.shape
    if shape.size == 0:
        return _empty_text(shape.dims)
    parts = _element_texts(np.ascontiguousarray(literal.array).reshape(-1), shape.dtype)
    innermost = True
    for size in reversed(shape.dims):
        opening, closing = ("{", "}") if innermost else ("{ ", " }")
        parts = [opening + ", ".join(parts[i : i + size]) + closing for i in range(0, len(parts), size)]
        innermost = False
    return parts[0]


def _empty_text(dims: tuple[int, ...]) -> str:
    before = dims[: dims.index(0)]
    if np.prod(before, dtype=object) > 1000:
        return "{}"  # shorter than thousands of empty braces
    text = "{}"
    for size in reversed(before):
        text = "{ " + ", ".join([text] * size) + " }"
    return text


def _element_texts(values: np.ndarray[Any, Any], dtype: ElementType) -> list[str]:
    if dtype.is_complex:
        parts = _float_texts(values.view(_numpy(dtype.real_part)), dtype.real_part)
        return [f"({parts[i]}, {parts[i + 1]})" for i in range(0, len(parts), 2)]
    if dtype.is_float:
        return _float_texts(values, dtype)
    if dtype.kind is Kind.PRED:
        return ["true" if v else "false" for v in values.tolist()]
    wide = values if values.dtype == np.uint64 else values.astype(np.int64)
    return [str(v) for v in wide.tolist()]


def _float_texts(values: np.ndarray[Any, Any], dtype: ElementType) -> list[str]:
    """Return the texts of floats; equal ones are printed once."""
    bits = values.view(f"u{values.dtype.itemsize}")
    unique, index_of_unique = np.unique(bits, return_inverse=True)
    texts = _unique_texts(unique, dtype)
    return [texts[i] for i in index_of_unique.tolist()]


def _unique_texts(bits: np.ndarray[Any, Any], dtype: ElementType) -> list[str]:
    low = bits.view(_numpy(dtype))
    with np.errstate(all="ignore"):  # signalling NaNs
        wide = low.astype(np.float64)
    texts = [_special_text(float(v), int(b), dtype) for v, b in zip(wide, bits, strict=True)]
    remaining = [i for i, t in enumerate(texts) if not t]
    for digits in _DIGITS.get(dtype, range(1, 18)):
        if not remaining:
            break
        tries = [_decimal(float(wide[i]), digits) for i in remaining]
        same = round_to(np.array(list(map(float, tries))), dtype).view(bits.dtype) == bits[remaining]
        for i, text in zip(remaining, tries, strict=True):
            texts[i] = text
        remaining = [i for i, ok in zip(remaining, same.tolist(), strict=True) if not ok]
    return texts


_DIGITS: dict[ElementType, Sequence[int]] = {ElementType.F64: (0,), ElementType.F32: (*range(1, 10), 0)}


def _decimal(value: float, digits: int) -> str:
    """Return a decimal with a number of digits; 0 means those that the double needs."""
    if value.is_integer() and abs(value) < 1e9:
        return "-0.0" if value == 0 and np.signbit(value) else str(int(value))  # XLA reads -0 as 0
    text = f"{value:.{digits}g}" if digits else repr(value)
    return text.removesuffix(".0")


def _special_text(value: float, bits: int, dtype: ElementType) -> str:
    """Return the text of a value that is not finite, else an empty string."""
    if value == value:
        return "" if abs(value) != float("inf") else ("-inf" if value < 0 else "inf")
    if dtype not in _MANTISSA:
        return "-nan" if dtype in _SIGNED_NAN and bits >> (dtype.bits - 1) else "nan"
    sign = "-" if bits >> (dtype.bits - 1) else ""
    payload = bits & (2 ** _MANTISSA[dtype] - 1)
    return f"{sign}nan" if payload == 1 << (_MANTISSA[dtype] - 1) else f"{sign}nan(0x{payload:x})"
