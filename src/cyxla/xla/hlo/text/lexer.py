"""A cursor over HLO text: compiled patterns matched in place, errors with line and column.

Comments are replaced by blanks of the same length first, so patterns only skip blanks and positions stay valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from cyxla.errors import HloParseError
from cyxla.xla.hlo.limits import MAX_NESTING

WS: Final = r"[ \t\r\n]*+"
NAME: Final = r"[\w.\-]++"
KEYWORDS: Final = ("HloModule", "ENTRY", "ROOT")
INT64: Final = (-(2**63), 2**63 - 1)


class Pattern:
    """A pattern that skips blanks first; character classes are ASCII.

    It is compiled on first use: compiling all patterns takes milliseconds, and a text needs few.
    """

    __slots__ = ("_source", "finditer", "fullmatch", "match")

    match: Callable[..., re.Match[str] | None]
    fullmatch: Callable[..., re.Match[str] | None]
    finditer: Callable[..., Iterator[re.Match[str]]]

    def __init__(self, source: str) -> None:
        self._source = WS + source

    def __getattr__(self, name: str) -> Any:
        if name not in Pattern.__slots__:
            raise AttributeError(name)
        compiled = re.compile(self._source, re.ASCII)
        self.match, self.fullmatch, self.finditer = compiled.match, compiled.fullmatch, compiled.finditer
        return getattr(self, name)


_BLANKS = re.compile(WS)
_WORD = Pattern(r"[\w.\-+]+|\S")
_INTEGER = Pattern(r"(-?+[0-9]++)(?![\w.])")
_PLAIN_INTEGERS = re.compile(r"[ \t\r\n]*-?[0-9]{1,18}[ \t\r\n]*(?:,[ \t\r\n]*-?[0-9]{1,18}[ \t\r\n]*)*+")
_NAME = Pattern(rf"%?+({NAME})")
_STRING = Pattern(r'"((?:[^"\\]|\\[\s\S])*+)"')
_BALANCE = re.compile(r'"(?:[^"\\]|\\[\s\S])*+"|[{}"]')
_QUOTED_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\[\s\S])*+"|//[^\n]*+|/\*[\s\S]*?\*/|/\*')
_NOT_NEWLINE = re.compile(r"[^\n]")


def blank_comments(text: str) -> str:
    """Replace comments by blanks of the same length; strings stay unchanged."""
    if "//" not in text and "/*" not in text:
        return text

    def blank(m: re.Match[str]) -> str:
        comment = m.group()
        if comment[0] == '"':
            return comment
        if comment == "/*":
            raise Cursor(text).error("comment without an end", m.start())
        return _NOT_NEWLINE.sub(" ", comment)

    return _QUOTED_OR_COMMENT.sub(blank, text)


class Cursor:
    """A position in a text.

    Attributes
    ----------
    text : str
        The whole text, without comments.
    pos : int
        Current position.
    """

    __slots__ = ("depth", "elided", "pos", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.depth = 0
        self.elided = 0  # bytes of constants with elided values

    def error(self, message: str, at: int | None = None, hint: str = "") -> HloParseError:
        """Return an error at a position; by default at the next token."""
        position = self.skip() if at is None else at
        line = self.text.count("\n", 0, position) + 1
        return HloParseError(message, line, position - self.text.rfind("\n", 0, position), hint=hint)

    def line_and_column(self, at: int) -> str:
        """Return line and column of a position, for messages."""
        return f"line {self.text.count(chr(10), 0, at) + 1}, column {at - self.text.rfind(chr(10), 0, at)}"

    def skip(self) -> int:
        """Skip blanks, and return the position of the next token."""
        m = _BLANKS.match(self.text, self.pos)
        assert m is not None
        self.pos = m.end()
        return self.pos

    def next_token(self) -> str:
        """Return the next token, for messages."""
        m = _WORD.match(self.text, self.pos)
        return repr(m.group().strip()[:40]) if m else "the end"

    def match(self, pattern: re.Pattern[str] | Pattern) -> re.Match[str] | None:
        """Match a pattern at the current position and move past it."""
        m = pattern.match(self.text, self.pos)
        if m is not None:
            self.pos = m.end()
        return m

    def at(self, mark: str) -> bool:
        """Return True if a mark is next."""
        return self.text.startswith(mark, self.skip())

    def accept(self, mark: str) -> bool:
        """Move past a mark if it is next."""
        is_next = self.text.startswith(mark, self.skip())
        if is_next:
            self.pos += len(mark)
        return is_next

    def expect(self, mark: str, context: str) -> None:
        """Move past a mark, or raise if it is not next."""
        if not self.accept(mark):
            raise self.error(f"expected {mark!r} {context}, found {self.next_token()}")

    def enter(self, weight: int = 1) -> None:
        """Enter `weight` levels of nesting; constructs that take more of Python's stack weigh more."""
        self.depth += weight
        if self.depth > MAX_NESTING:
            raise self.error("nested too deep")

    def leave(self, weight: int = 1) -> None:
        """Leave `weight` levels of nesting."""
        self.depth -= weight

    def name(self, description: str) -> str:
        """Read a name, with or without ``%``."""
        start = self.skip()
        m = self.match(_NAME)
        if m is None or m.group() in KEYWORDS:
            self.pos = start
            raise self.error(f"expected {description}, found {self.next_token()}")
        return m.group(1)

    def integer(self, description: str, low: int = INT64[0], high: int = INT64[1]) -> int:
        """Read a decimal integer within bounds."""
        start = self.skip()
        m = self.match(_INTEGER)
        if m is None:
            raise self.error(f"expected {description}, found {self.next_token()}", start)
        return self.bounded(m.group(1), description, start, low, high)

    def bounded(self, digits: str, description: str, at: int, low: int = INT64[0], high: int = INT64[1]) -> int:
        """Return the value of an integer that was matched."""
        # Twenty characters suffice for 64-bit numbers; int() of very many digits is slow, and finally raises.
        value = int(digits) if len(digits) <= 20 else None
        if value is None or not low <= value <= high:
            raise self.error(f"{description} {digits[:40]} is out of range", at)
        return value

    def integers(
        self, inner: str, description: str, at: int, low: int = INT64[0], high: int = INT64[1]
    ) -> tuple[int, ...]:
        """Return the values of a comma-separated list that was matched at position `at`."""
        if not inner or inner.isspace():
            return ()
        if _PLAIN_INTEGERS.fullmatch(inner):
            values = tuple(map(int, inner.split(",")))
            if min(values) >= low and max(values) <= high:
                return values
        return self._integers_one_by_one(inner, description, at, low, high)

    def _integers_one_by_one(self, inner: str, description: str, at: int, low: int, high: int) -> tuple[int, ...]:
        outer, self.pos = self.pos, at
        values = [self.integer(description, low, high)]
        while self.accept(","):
            values.append(self.integer(description, low, high))
        if self.skip() < at + len(inner):
            raise self.error(f"expected ',' or the end of the list, found {self.next_token()}")
        self.pos = outer
        return tuple(values)

    def string(self, description: str) -> str:
        """Read a quoted string and unescape it."""
        m = self.match(_STRING)
        if m is None:
            raise self.error(f"expected {description} in quotes, found {self.next_token()}")
        return unescape(m.group(1))

    def braces(self, description: str) -> str:
        """Read balanced ``{...}`` verbatim; quoted strings may hold braces."""
        start = self.skip()
        end = balanced_end(self.text, start)
        if end < 0:
            raise self.error(f"expected {description} in balanced braces, found {self.next_token()}", start)
        self.pos = end
        return self.text[start:end]


def balanced_end(text: str, start: int) -> int:
    """Return the position after the braces that open at `start`, or -1."""
    if not text.startswith("{", start):
        return -1
    depth = 0
    for m in _BALANCE.finditer(text, start):
        mark = m.group()
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
            if depth == 0:
                return m.end()
        elif mark == '"':  # an unpaired quote
            return -1
    return -1


_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|([\s\S]))")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_MARKS = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def unescape(text: str) -> str:
    """Undo C escapes; octal and hex ones are bytes of UTF-8 (invalid ones become lone surrogates)."""
    if "\\" not in text:
        return text

    def unescape_match(m: re.Match[str]) -> bytes:
        octal, hexa, letter = m.groups()
        if letter is not None:
            return _LETTERS.get(letter, letter).encode("utf-8", "surrogateescape")
        return bytes([int(octal, 8) & 255 if octal is not None else int(hexa, 16)])

    parts, last = [], 0
    for m in _ESCAPE.finditer(text):
        parts += [text[last : m.start()].encode("utf-8", "surrogateescape"), unescape_match(m)]
        last = m.end()
    parts.append(text[last:].encode("utf-8", "surrogateescape"))
    return b"".join(parts).decode("utf-8", "surrogateescape")


_TO_ESCAPE = re.compile(r"[^ !#-&(-\[\]-~]")


def escape(text: str) -> str:
    """Escape a string as in C, bytes beyond ASCII in octal."""

    def escape_match(m: re.Match[str]) -> str:
        c = m.group()
        return _MARKS.get(c) or "".join(f"\\{b:03o}" for b in c.encode("utf-8", "surrogateescape"))

    return _TO_ESCAPE.sub(escape_match, text)


def quote(text: str) -> str:
    """Return a string escaped and in quotes."""
    return f'"{escape(text)}"'
