r"""The grammar of op declarations.

An attribute is ``name: type [>= minimum] [= default]``, an argument ``name: type``::

    T: {half, float, double} = DT_FLOAT      N: int >= 1      padding: {'SAME', "VALID"}      dims: list(int) = []
    x: T     y: int32     values: N * T      rest: Tlist      var: Ref(T)

Blanks are allowed around every token.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from cyxla.core.framework.attr_value import KINDS, AttrValue
from cyxla.core.framework.declarations.op_def import DATA_TYPES, ArgDef, AttrDef
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import GROUPS, DataType
from cyxla.errors import InvalidArgumentError, OpError

_NAME = re.compile(r"\s*([A-Za-z]\w*)\s*:\s*", re.ASCII)
_ARG = re.compile(
    r"\s*(?P<name>[a-z][a-z0-9_]*)\s*:\s*(?P<ref>Ref\s*\(\s*)?(?:(?P<number>[A-Za-z]\w*)\s*\*\s*)?"
    r"(?P<type>[A-Za-z]\w*)\s*(?(ref)\)\s*)",
    re.ASCII,
)
_LIST = re.compile(r"list\s*\(\s*")
_WORD = re.compile(r"([a-z_]\w*)\s*", re.ASCII)
_STRING = re.compile(r"""('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")\s*""", re.DOTALL)
_MINIMUM = re.compile(r">=\s*(-?\d+)\s*")
_SIGN = {sign: re.compile(rf"{re.escape(sign)}\s*") for sign in "{},()=[]"}
_INT = re.compile(r"([+-]?(?:0[xX][0-9a-fA-F]+|\d+))\s*")
_FLOAT = re.compile(r"([+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan))[fF]?\s*", re.IGNORECASE)
_BOOL = re.compile(r"(true|false)\b\s*")
_ENUM = re.compile(r"(DT_\w+|\d+)\s*")
_BLANKS = re.compile(r"\s*")
_GROUP_ALIASES = {"numerictype": "numbertype", "realnumerictype": "realnumbertype"}


class _Scanner:
    """Text with a read position."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    @property
    def rest(self) -> str:
        return self.text[self.at :]

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match a pattern at the read position, and advance if it matches."""
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def sign(self, sign: str) -> bool:
        return self.take(_SIGN[sign]) is not None

    def expect(self, pattern: re.Pattern[str], description: str) -> str:
        match = self.take(pattern)
        if not match:
            raise self.error(f"expected {description}")
        return match[1]

    def error(self, reason: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"{reason} at {self.rest!r} in the spec {self.text!r}")

    def end(self) -> None:
        if self.at != len(self.text):
            raise InvalidArgumentError(f"extra {self.rest!r} unparsed at the end of the spec {self.text!r}")


@lru_cache(maxsize=4096)
def parse_attr(spec: str) -> AttrDef:
    """Parse the declaration of an attribute.

    Parameters
    ----------
    spec : str
        Text ``name: type [>= minimum] [= default]``.

    Raises
    ------
    InvalidArgumentError
        The text cannot be parsed; the message quotes the position.
    """
    scanner = _Scanner(spec)
    name = scanner.expect(_NAME, "a name and ':'")
    is_list = scanner.take(_LIST) is not None
    base, allowed = _attr_type(scanner)
    if is_list and not scanner.sign(")"):
        raise scanner.error("expected ')' to close 'list('")
    kind = f"list({base})" if is_list else base
    minimum = scanner.take(_MINIMUM)
    default = _value(scanner, base, is_list) if scanner.sign("=") else None
    scanner.end()
    value = None if default is None else AttrValue(kind, default[0])
    return AttrDef(name, kind, value, int(minimum[1]) if minimum else None, allowed)


def parse_value(kind: str, text: str) -> AttrValue:
    """Parse the value of an attribute of a kind such as ``int`` or ``list(type)``.

    Raises
    ------
    InvalidArgumentError
        The text is not a value of the kind.
    """
    scanner = _Scanner(text.strip())
    is_list = kind.startswith("list(")
    (value,) = _value(scanner, kind[5:-1] if is_list else kind, is_list)
    scanner.end()
    return AttrValue(kind, value)


def _attr_type(scanner: _Scanner) -> tuple[str, tuple[DataType | str, ...] | None]:
    if scanner.sign("{"):
        return _restriction(scanner)
    word = scanner.expect(_WORD, "a type")
    group = GROUPS.get(_GROUP_ALIASES.get(word, word))
    if group is not None:
        return "type", group
    if word not in KINDS:
        raise InvalidArgumentError(f"trouble parsing the type {word!r} in the spec {scanner.text!r}")
    return word, None


def _restriction(scanner: _Scanner) -> tuple[str, tuple[DataType | str, ...]]:
    strings = _STRING.match(scanner.text, scanner.at) is not None
    values: list[DataType | str] = []
    while not scanner.sign("}"):
        if strings:
            values.append(_unquote(scanner.expect(_STRING, "a quoted string")))
        else:
            values += _types_named(scanner)
        if not scanner.sign(","):
            if not scanner.sign("}"):
                raise scanner.error("expected ',' or '}'")
            break
    if not values:
        raise scanner.error("a restriction that allows no value")
    return ("string" if strings else "type"), tuple(values)


def _types_named(scanner: _Scanner) -> Iterable[DataType]:
    word = scanner.expect(_WORD, "a data type")
    group = GROUPS.get(_GROUP_ALIASES.get(word, word))
    if group is None and word not in DATA_TYPES:
        raise InvalidArgumentError(f"unrecognised data type {word!r} in the spec {scanner.text!r}")
    return group or (DATA_TYPES[word],)


def _unquote(text: str) -> str:
    """Return the string of a literal with C escapes; bytes that are not UTF-8 become surrogates."""
    # Python's bytes literals have the escapes of C; characters beyond ASCII are inserted as escaped bytes.
    body = "".join(c if ord(c) < 128 else "".join(f"\\x{b:02x}" for b in c.encode()) for c in text)
    value: bytes = ast.literal_eval("b" + body)
    return value.decode("utf-8", "surrogateescape")


# Defaults --------------------------------------------------------------------------------------------------------


def _value(scanner: _Scanner, kind: str, is_list: bool) -> tuple[Any]:
    read = _READERS[kind]
    if not is_list:
        return (read(scanner),)
    if not scanner.sign("["):
        raise scanner.error("expected '[' before the default of a list")
    values = []
    while not scanner.sign("]"):
        values.append(read(scanner))
        if not scanner.sign(",") and not scanner.text.startswith("]", scanner.at):
            raise scanner.error("expected ',' or ']'")
    return (tuple(values),)


def _read_int(scanner: _Scanner) -> int:
    value = int(scanner.expect(_INT, "an integer"), 0)
    if not -(2**63) <= value < 2**63:
        raise InvalidArgumentError(f"{value} does not fit in 64 bits in the spec {scanner.text!r}")
    return value


def _read_type(scanner: _Scanner) -> DataType:
    word = scanner.expect(_ENUM, "a data type such as DT_FLOAT")
    try:
        return DataType(int(word)) if word.isdigit() else DataType[word]
    except (KeyError, ValueError):
        raise InvalidArgumentError(f"unrecognised data type {word!r} in the spec {scanner.text!r}") from None


def _read_shape(scanner: _Scanner) -> TensorShape:
    text = _braces(scanner)
    if "".join(text.split()) == "{unknown_rank:true}":
        return TensorShape()
    value: TensorShape = _read_message("shape", text, scanner)
    return value


def _braces(scanner: _Scanner) -> str:
    """Read the text of a message in braces, up to the end unless in a list."""
    start, depth = scanner.at, 0
    for at in range(start, len(scanner.text)):
        depth += {"{": 1, "}": -1}.get(scanner.text[at], 0)
        if depth <= 0:
            scanner.at = at + 1
            break
    text = scanner.text[start : scanner.at].strip()
    if not text.startswith("{") or not text.endswith("}"):
        raise scanner.error("expected a message in braces")
    scanner.take(_BLANKS)
    return text


def _read_message(kind: str, text: str, scanner: _Scanner) -> Any:
    # Imported lazily: few declarations have such a default, and the protobuf runtime loads slowly.
    from cyxla.core.framework.protos.attrs import attr_from_text

    try:
        return attr_from_text(kind, text).value
    except OpError as e:
        raise InvalidArgumentError(f"could not parse the default in the spec {scanner.text!r}: {e.message}") from None


_READERS: Mapping[str, Callable[[_Scanner], Any]] = {
    "string": lambda s: "".join(_unquote(t) for t in _strings(s)),
    "int": _read_int,
    "float": lambda s: float(np.float32(s.expect(_FLOAT, "a number"))),  # protobuf stores 32 bits
    "bool": lambda s: s.expect(_BOOL, "true or false") == "true",
    "type": _read_type,
    "shape": _read_shape,
    "tensor": lambda s: _read_message("tensor", _braces(s), s),
    "func": lambda s: _read_message("func", _braces(s), s),
}


def _strings(scanner: _Scanner) -> Iterable[str]:
    yield scanner.expect(_STRING, "a quoted string")
    while match := scanner.take(_STRING):
        yield match[1]


# Arguments -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _split_arg(spec: str) -> tuple[str, bool, str, str]:
    match = _ARG.match(spec)
    if not match:
        raise InvalidArgumentError(
            f"trouble parsing the argument {spec!r}", hint="write `name: type`, `name: N * type` or `name: Ref(type)`"
        )
    if match.end() != len(spec):
        raise InvalidArgumentError(f"extra {spec[match.end() :]!r} unparsed at the end of the argument {spec!r}")
    return match["name"], bool(match["ref"]), match["number"] or "", match["type"]


def parse_arg(spec: str, attrs: dict[str, AttrDef]) -> ArgDef:
    """Parse the declaration of an argument.

    Parameters
    ----------
    spec : str
        Text ``name: type`` with one of the five forms of types.
    attrs : dict of AttrDef
        Attributes of the op; one used as a length is given the minimum 1 unless it has a minimum.

    Raises
    ------
    InvalidArgumentError
        The text cannot be parsed, or refers to an attribute that is missing or of another type.
    """
    name, is_ref, number, word = _split_arg(spec)
    if number:
        _referenced_attr(number, ("int",), attrs, spec)
        _imply_minimum(number, attrs)
    if word in DATA_TYPES:
        return ArgDef(name, DATA_TYPES[word], number_attr=number, is_ref=is_ref)
    if _referenced_attr(word, ("type", "list(type)"), attrs, spec) == "type":
        return ArgDef(name, type_attr=word, number_attr=number, is_ref=is_ref)
    _imply_minimum(word, attrs)
    return ArgDef(name, type_list_attr=word, number_attr=number, is_ref=is_ref)


def _referenced_attr(name: str, kinds: tuple[str, ...], attrs: dict[str, AttrDef], spec: str) -> str:
    attr = attrs.get(name)
    if attr is None:
        raise InvalidArgumentError(f"reference to the unknown attr {name!r} in the argument {spec!r}")
    if attr.type not in kinds:
        raise InvalidArgumentError(
            f"reference to attr {name!r} of type {attr.type} in the argument {spec!r}, which needs {' or '.join(kinds)}"
        )
    return attr.type


def _imply_minimum(name: str, attrs: dict[str, AttrDef]) -> None:
    if attrs[name].minimum is None:
        attrs[name] = replace(attrs[name], minimum=1)
