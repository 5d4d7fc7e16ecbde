"""A lexer of MLIR text with one token of lookahead; errors have line and column."""

from __future__ import annotations

import re
from typing import Final

from cyxla.errors import HloParseError

MAX_NESTING: Final = 64  # of regions and attributes; each level takes several frames of Python's stack
_BLANKS: Final = r"(?:[ \t\r\n]++|//[^\n]*+)*+"
_TOKEN = re.compile(
    _BLANKS
    + r"""(
      %[\w$.\-]++(?:\#[0-9]++)?+
    | @(?:[\w$.\-]++|"(?:[^"\\\n]|\\.)*+")(?:::@(?:[\w$.\-]++|"(?:[^"\\\n]|\\.)*+"))*+
    | "(?:[^"\\\n]|\\.)*+"
    | [A-Za-z_][\w$.]*+
    | -?+(?:0x[0-9A-Fa-f]++|[0-9]++(?:\.[0-9]*+(?:[eE][-+]?+[0-9]++)?+)?+)
    | [#!^][\w$.\-]++
    | -> | :: | \{-\# | .
    | \Z)""",
    re.ASCII | re.VERBOSE | re.DOTALL,
)
_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*+"|->|[<>(){}\[\]]', re.DOTALL)
_OPENING = {")": "(", "]": "[", "}": "{", ">": "<"}


class Lexer:
    """A position in a text.

    Attributes
    ----------
    text : str
        The whole text.
    token : str
        Next token; empty at the end.
    start, end : int
        Positions of the beginning and the end of the token.
    """

    __slots__ = ("depth", "end", "start", "text", "token")

    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = 0
        self.jump(0)

    def jump(self, position: int) -> None:
        """Continue at a position."""
        m = _TOKEN.match(self.text, position)
        assert m is not None  # any character is a token, and so is the end
        self.start, self.end = m.span(1)
        self.token = m.group(1)

    def next(self) -> str:
        """Move past a token, and return it."""
        token = self.token
        m = _TOKEN.match(self.text, self.end)
        assert m is not None
        self.start, self.end = m.span(1)
        self.token = m.group(1)
        return token

    def peek(self) -> str:
        """Return the token after the next one."""
        m = _TOKEN.match(self.text, self.end)
        assert m is not None
        return m.group(1)

    def error(self, message: str, at: int | None = None, hint: str = "") -> HloParseError:
        """Return an error at a position, by default at the next token."""
        return HloParseError(message, *self.line_and_column(self.start if at is None else at), hint=hint)

    def line_and_column(self, position: int) -> tuple[int, int]:
        """Return line and column, both from 1."""
        return self.text.count("\n", 0, position) + 1, position - self.text.rfind("\n", 0, position)

    def next_token(self) -> str:
        """Return the next token, for messages."""
        return repr(self.token[:40]) if self.token else "the end"

    def accept(self, mark: str) -> bool:
        """Move past a mark if it is next."""
        if self.token != mark:
            return False
        self.next()
        return True

    def expect(self, mark: str, context: str) -> None:
        """Move past a mark, or raise if it is not next."""
        if self.token != mark:
            raise self.error(f"expected {mark!r} {context}, found {self.next_token()}")
        self.next()

    def expect_token(self, first: str, description: str) -> str:
        """Move past a token that begins with one of some characters, and return it."""
        if self.token[:1] not in first or not self.token:
            raise self.error(f"expected {description}, found {self.next_token()}")
        return self.next()

    def word(self, description: str) -> str:
        """Move past a bare word, and return it."""
        if not (self.token[:1].isalpha() or self.token[:1] == "_"):
            raise self.error(f"expected {description}, found {self.next_token()}")
        return self.next()

    def integer(self, description: str) -> int:
        """Read a decimal integer of 64 bits."""
        token = self.token
        if not token.lstrip("-").isdecimal():
            raise self.error(f"expected {description}, found {self.next_token()}")
        if len(token) > 20 or not -(1 << 63) <= int(token) < 1 << 64:
            raise self.error(f"{token[:40]} is out of the range of 64 bits")
        self.next()
        return int(token)

    def enter(self) -> None:
        """Enter a level of nesting."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.error("nested too deep")

    def leave(self) -> None:
        """Leave a level of nesting."""
        self.depth -= 1

    def balanced(self, description: str) -> str:
        """Move past balanced brackets, and return their text."""
        begin, open_ = self.start, []
        for m in _BRACKETS.finditer(self.text, begin):
            mark = m.group()
            if mark in "(<[{":
                open_.append(mark)
            elif mark in ")>]}":
                if not open_ or open_.pop() != _OPENING[mark]:
                    raise self.error(f"brackets of {description} do not match", m.start())
                if not open_:
                    self.jump(m.end())
                    return self.text[begin : m.end()]
        raise self.error(f"brackets of {description} do not close", begin)


_ESCAPE = re.compile(r"\\(?:([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t"}


def unquote(token: str) -> str:
    """Return the text of a quoted string; escapes are a letter, or two hex digits of UTF-8."""
    inner = token[1:-1]
    if "\\" not in inner:
        return inner
    parts, last = [], 0
    for m in _ESCAPE.finditer(inner):
        digits, letter = m.groups()
        parts.append(inner[last : m.start()].encode("utf-8", "surrogateescape"))
        parts.append(bytes.fromhex(digits) if digits else _LETTERS.get(letter, letter).encode())
        last = m.end()
    parts.append(inner[last:].encode("utf-8", "surrogateescape"))
    return b"".join(parts).decode("utf-8", "surrogateescape")


def symbol(token: str) -> str:
    """Return the name of a symbol reference such as ``@main`` or ``@"a b"``."""
    name = token.rsplit("::", 1)[-1][1:]
    return unquote(name) if name.startswith('"') else name
