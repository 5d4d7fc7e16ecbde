"""Parser of RE2's regular expressions."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from cyxla.errors import InvalidArgumentError, UnimplementedError

Node = tuple[Any, ...]
Test = Callable[[str], bool]
Range = tuple[int, int]

_MAX_REPEATS = 1000
_MAX_DEPTH = 80  # maximum nesting of groups: each takes several frames of Python's stack
_DIGIT, _LOWER, _UPPER = (48, 57), (97, 122), (65, 90)
_LETTER = [_LOWER, _UPPER]
_CLASSES: dict[str, list[Range]] = {
    "d": [_DIGIT],
    "w": [_DIGIT, *_LETTER, (95, 95)],
    "s": [(9, 10), (12, 13), (32, 32)],
}
_NAMED: dict[str, list[Range]] = {
    "alnum": [_DIGIT, *_LETTER],
    "alpha": _LETTER,
    "ascii": [(0, 127)],
    "blank": [(9, 9), (32, 32)],
    "cntrl": [(0, 31), (127, 127)],
    "digit": [_DIGIT],
    "graph": [(33, 126)],
    "lower": [_LOWER],
    "print": [(32, 126)],
    "punct": [(33, 47), (58, 64), (91, 96), (123, 126)],
    "space": [(9, 13), (32, 32)],
    "upper": [_UPPER],
    "word": _CLASSES["w"],
    "xdigit": [_DIGIT, (97, 102), (65, 70)],
}
_CONTROLS = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_ASSERTIONS = {"A": "text begins", "z": "text ends", "b": "word edge", "B": "no word edge"}
_REPEATS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_MAX_CODE_POINT = 0x10FFFF


def parse(pattern: str) -> tuple[Node, int]:
    r"""Parse a pattern into its tree and the number of its groups.

    Raises
    ------
    InvalidArgumentError
        The pattern is malformed.
    UnimplementedError
        It contains bytes (``\C``) or Unicode scripts.
    """
    parser = _Parser(pattern)
    root = parser.alternatives(frozenset())
    if parser.rest:
        parser.fail("unmatched ')'")
    return root, parser.groups


def _char_test(ranges: Sequence[Range], negated: bool, fold: bool) -> Test:
    """Return a test for characters in the ranges, of either case if `fold` is set."""

    def inside(c: str) -> bool:
        number = ord(c)
        return any(low <= number <= high for low, high in ranges)

    def test(c: str) -> bool:
        cases = {c, c.lower(), c.upper()} if fold else (c,)
        return any(len(x) == 1 and inside(x) for x in cases) != negated

    return test


def _complement(ranges: Sequence[Range]) -> list[Range]:
    complement, start = [], 0
    for low, high in sorted(ranges):
        if start < low:
            complement.append((start, low - 1))
        start = max(start, high + 1)
    return [*complement, (start, _MAX_CODE_POINT)]


class _Parser:
    """Recursive-descent parser."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at, self.groups, self.depth = pattern, 0, 0, 0

    @property
    def rest(self) -> str:
        return self.pattern[self.at :]

    def fail(self, reason: str) -> NoReturn:
        raise InvalidArgumentError(f"the pattern {self.pattern!r} is wrong at {self.at}: {reason}")

    def take(self, text: str) -> bool:
        """Consume a text if it is next."""
        if not self.pattern.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def next(self) -> str:
        if self.at >= len(self.pattern):
            self.fail("it ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    # Groups, sequences, repeats

    def alternatives(self, flags: frozenset[str]) -> Node:
        """Parse alternatives up to a closing parenthesis; flags are scoped to them."""
        alternatives: list[Node] = []
        parts: list[Node] = []
        while self.rest and not self.rest.startswith(")"):
            if self.take("|"):
                alternatives.append(("concatenation", *parts))
                parts = []
                continue
            flags, part = self.atom(flags)
            parts.append(self.repetition(part, flags))
        alternatives.append(("concatenation", *parts))
        return alternatives[0] if len(alternatives) == 1 else ("alternation", *alternatives)

    def repetition(self, part: Node, flags: frozenset[str]) -> Node:
        before = self.at
        bounds = self.repetition_bounds()
        if bounds is None:
            return part
        if part == ("flags",):
            self.fail("nothing to repeat")
        greedy = self.take("?") == ("U" in flags)
        end = self.at
        if self.repetition_bounds() is not None:
            self.fail(f"{self.pattern[before : self.at]!r} repeats a repeat")
        self.at = end
        least, most = bounds
        if max(least, most or 0) > _MAX_REPEATS or (most is not None and most < least):
            self.fail(f"at most {_MAX_REPEATS} repeats, the least before the most")
        return ("repeat", part, least, most, greedy)

    def repetition_bounds(self) -> tuple[int, int | None] | None:
        """Parse a repetition operator; braces without numbers are literal characters."""
        for sign, bounds in _REPEATS.items():
            if self.take(sign):
                return bounds
        end = self.pattern.find("}", self.at)
        if not self.rest.startswith("{") or end < 0:
            return None
        least, comma, most = self.pattern[self.at + 1 : end].partition(",")
        if not _is_number(least) or (most and not _is_number(most)):
            return None
        self.at = end + 1
        return int(least), (int(most) if most else None) if comma else int(least)

    def atom(self, flags: frozenset[str]) -> tuple[frozenset[str], Node]:
        """Parse a character, class, assertion or group; return it with the flags that apply from there on."""
        c = self.next()
        if c == "(":
            return self.group(flags)
        if c in "*+?":
            self.fail("nothing to repeat")
        many = "m" in flags
        if c == "^":
            return flags, ("assert", "line begins" if many else "text begins")
        if c == "$":
            return flags, ("assert", "line ends" if many else "text ends")
        if c == ".":
            return flags, ("char", _char_test([] if "s" in flags else [(10, 10)], True, False))
        if c == "[":
            return flags, ("char", self.bracket("i" in flags))
        if c == "\\":
            return flags, self.escape(flags)
        return flags, self.literal(c, flags)

    def literal(self, c: str, flags: frozenset[str]) -> Node:
        return ("char", _char_test([(ord(c), ord(c))], False, "i" in flags))

    def group(self, flags: frozenset[str]) -> tuple[frozenset[str], Node]:
        if not self.take("?"):
            return flags, self.group_body(self.next_group(), flags)
        if self.take("P<") or (self.rest.startswith("<") and self.rest[1:2] not in ("=", "!") and self.take("<")):
            name = self.pattern[self.at : (end := self.pattern.find(">", self.at))]
            if end < 0 or not name.isidentifier():
                self.fail("a group's name is of letters, digits and '_', up to '>'")
            self.at = end + 1
            return flags, self.group_body(self.next_group(), flags)
        new = set(flags)
        is_capturing = True
        while (c := self.next()) not in ":)":
            if c == "-" and is_capturing:
                is_capturing = False
            elif c in "imsU":
                (new.add if is_capturing else new.discard)(c)
            else:
                self.fail(f"'(?{c}' is not supported")
        if c == ")":
            return frozenset(new), ("concatenation",) if not self.is_repetition_next() else ("flags",)
        return flags, self.group_body(None, frozenset(new))

    def is_repetition_next(self) -> bool:
        position, is_repetition = self.at, self.repetition_bounds()
        self.at = position
        return is_repetition is not None

    def next_group(self) -> int:
        self.groups += 1
        return self.groups

    def group_body(self, number: int | None, flags: frozenset[str]) -> Node:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.fail(f"groups lie in more than {_MAX_DEPTH} others")
        body = self.alternatives(flags)
        if not self.take(")"):
            self.fail("a '(' is not closed")
        self.depth -= 1
        return body if number is None else ("group", number, body)

    # Characters

    def escape(self, flags: frozenset[str]) -> Node:
        c = self.rest[:1]
        if c in _ASSERTIONS and c:
            self.at += 1
            return ("assert", _ASSERTIONS[c])
        if self.take("Q"):
            text, end, _ = self.rest.partition("\\E")
            self.at += len(text) + len(end)
            return ("concatenation", *(self.literal(x, flags) for x in text))
        ranges = self.ranges()
        if callable(ranges):
            return ("char", ranges)
        return ("char", _char_test(ranges, False, "i" in flags))

    def ranges(self) -> list[Range] | Test:
        """Parse the rest of an escape: ranges, or a test for a Unicode category."""
        c = self.next()
        if c.lower() in _CLASSES:
            ranges = _CLASSES[c.lower()]
            return ranges if c.islower() else _complement(ranges)
        if c in "pP":
            return self.category(c == "P")
        if c == "C":
            raise UnimplementedError(f"bytes in a pattern of text: '\\C' in {self.pattern!r}")
        number = self.number(c)
        return [(number, number)]

    def number(self, c: str) -> int:
        """Parse the rest of an escaped character."""
        if c in _CONTROLS:
            return _CONTROLS[c]
        if c == "x":
            return self.hexadecimal()
        if c in "01234567" and (c == "0" or self.rest[:1] in tuple("01234567")):
            digits = c
            while len(digits) < 3 and self.rest[:1] in tuple("01234567"):
                digits += self.next()
            return int(digits, 8)
        if c.isalnum() and c.isascii():
            self.fail(f"'\\{c}' is not supported")
        return ord(c)

    def hexadecimal(self) -> int:
        text = self.next()
        if text == "{":
            text, end, _ = self.rest.partition("}")
            self.at += len(text) + len(end)
        else:
            text += self.next()
        try:
            number = int(text, 16)
        except ValueError:
            self.fail(f"{text!r} is not a hexadecimal number")
        if not 0 <= number <= _MAX_CODE_POINT:
            self.fail(f"unknown character {text}")
        return number

    def category(self, negated: bool) -> Test:
        name = self.next()
        if name == "{":
            name, end, _ = self.rest.partition("}")
            self.at += len(name) + len(end)
        if name.startswith("^"):
            name, negated = name[1:], not negated
        if len(name) > 2 or name[:1] not in tuple("LMNPSZC"):
            raise UnimplementedError(f"the characters {name!r} of Unicode, in the pattern {self.pattern!r}")
        return lambda c: unicodedata.category(c).startswith(name) != negated

    def bracket(self, fold: bool) -> Test:
        """Parse a bracketed class."""
        negated, first = self.take("^"), True
        ranges: list[Range] = []
        tests: list[Test] = []
        while first or not self.rest.startswith("]"):
            first = False
            item = self.bracket_item()
            if callable(item):
                tests.append(item)
            elif len(item) == 1 and item[0][0] == item[0][1] and self.at_range():
                self.next()
                end = self.bracket_item()
                if callable(end) or len(end) != 1 or end[0][0] != end[0][1] or end[0][0] < item[0][0]:
                    self.fail("a range in brackets goes from one character up to another")
                ranges.append((item[0][0], end[0][0]))
            else:
                ranges += item
        self.next()
        inside = _char_test(ranges, False, fold)
        return lambda c: (inside(c) or any(test(c) for test in tests)) != negated

    def at_range(self) -> bool:
        return self.rest.startswith("-") and not self.rest.startswith("-]")

    def bracket_item(self) -> list[Range] | Test:
        if self.take("[:"):
            name, end, _ = self.rest.partition(":]")
            self.at += len(name) + len(end)
            ranges = _NAMED.get(name.removeprefix("^"))
            if ranges is None or not end:
                self.fail(f"unknown character class [:{name}:]")
            return _complement(ranges) if name.startswith("^") else ranges
        c = self.next()
        return self.ranges() if c == "\\" else [(ord(c), ord(c))]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6
