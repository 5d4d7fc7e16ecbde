"""MLIR's attributes and locations as plain Python values.

Numbers, strings, booleans, lists and dictionaries are Python's; ``array<...>`` is a tuple, ``dense<...>`` a `Dense`, a
type a `Shape`, the value of an enumeration or another bare word a `Keyword`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cyxla.errors import ResourceExhaustedError
from cyxla.types import ElementType, Literal, Shape
from cyxla.xla.stablehlo.dense_elements import DenseError, elements_of, from_bytes, in_range, signed
from cyxla.xla.stablehlo.lexer import Lexer, symbol, unquote
from cyxla.xla.stablehlo.types import TypeReader, unsupported

_DENSE = re.compile(r'dense\s*+<(\s*+"[^"]*+"\s*+|[^">]*+)>', re.DOTALL)
_RESOURCE = re.compile(r'(?m)^\s*([\w.\-"]+)\s*:\s*"0x([0-9A-Fa-f]*)"')
_FLOAT = re.compile(r"-?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]{1,9})?")
_HEX = re.compile(r"-?0x")
_MAX_ELEMENTS = 1 << 18  # elements of an attribute


class Symbol(str):
    """The name of a function, such as ``@main``."""


class Keyword(str):
    """A bare word, such as ``LT`` in ``#stablehlo<comparison_direction LT>``."""


class Opaque(str):
    """An attribute that is kept as text."""


class Dictionary(dict[str, Any]):
    """A dictionary that keeps its text."""

    text: str = ""


class Dense(NamedTuple):
    """An array; the literal is a scalar if the array is a splat."""

    shape: Shape
    literal: Literal

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """All elements; for attributes, which are smaller than constants may be."""
        if self.shape.size > _MAX_ELEMENTS:
            raise ResourceExhaustedError(f"an attribute of {self.shape.size} elements")
        return np.broadcast_to(self.literal.array, self.shape.dims)


class Record(NamedTuple):
    """An attribute of a dialect with fields, such as ``#stablehlo.gather<...>``."""

    name: str
    fields: dict[str, Any]


class Location(NamedTuple):
    """Source location of an operation; `inner` is another one, or the alias of one."""

    name: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    inner: Location | str | None = None


class AttributeReader:
    """Parser of attributes.

    Parameters
    ----------
    lexer : Lexer
        Lexer of the text.
    types : TypeReader
        Parser of types on the same lexer.
    """

    def __init__(self, lexer: Lexer, types: TypeReader) -> None:
        self.lexer = lexer
        self.types = types
        self.aliases: dict[str, Any] = {}
        self._resources: dict[str, bytes] | None = None

    def attribute(self) -> Any:
        """Read an attribute."""
        self.lexer.enter()
        value = self._attribute()
        self.lexer.leave()
        return value

    def _attribute(self) -> Any:
        lexer, token = self.lexer, self.lexer.token
        first = token[:1]
        if first == '"':
            return self._read_type(unquote(lexer.next()))
        if "0" <= first <= "9" or (first == "-" and len(token) > 1 and token != "->"):
            return self._number()
        if first == "@":
            return Symbol(symbol(lexer.next()))
        if first == "[":
            return self.list()
        if first == "{":
            return self.dictionary()
        if first == "#":
            return self._dialect()
        return _WORDS[token](self) if token in _WORDS else self.types.any()

    def _read_type(self, value: Any) -> Any:
        if self.lexer.accept(":"):
            self.types.type()
        return value

    def _number(self) -> int | float:
        lexer, start, token = self.lexer, self.lexer.start, self.lexer.next()
        if len(token) > 400:
            raise lexer.error("a number of too many digits", start)
        is_integer, is_hex = not token.count("."), _HEX.match(token) is not None
        value: int | float = int(token, 0) if is_hex else int(token) if is_integer else float(token)
        if not lexer.accept(":"):
            return self._checked_integer(value, ElementType.S64, start) if is_integer else value
        kind, is_signed = self._number_type()
        if kind.is_float and kind.numpy_dtype is not None and is_hex:
            if not 0 <= value < 1 << kind.bits:
                raise lexer.error(f"{token[:40]} is out of the range of {kind}", start)
            return float(np.frombuffer(int(value).to_bytes(kind.itemsize, "little"), kind.numpy_dtype)[0])
        if kind.is_integer or kind is ElementType.PRED:
            return self._checked_integer(value, kind, start, is_signed)
        return float(value) if kind.is_float and abs(value) < 1 << 1000 else value

    def _checked_integer(self, value: float, kind: ElementType, start: int, is_signed: bool = False) -> int:
        """Return an integer that its type can hold; one beyond the signed range of a signless type is reinterpreted."""
        if not isinstance(value, int):
            raise self.lexer.error(f"{value} is not an integer", start)
        if not in_range(value, 2 * value if is_signed else value, kind):
            raise self.lexer.error(f"{str(value)[:40]} is out of the range of {kind}", start)
        return value != 0 if kind is ElementType.PRED else signed(value, kind)

    def list(self) -> list[Any]:
        """Read a list ``[...]``."""
        lexer = self.lexer
        lexer.expect("[", "before a list")
        items: list[Any] = []
        while lexer.token != "]":
            items.append(self.attribute())
            if not lexer.accept(","):
                break
        lexer.expect("]", "after a list")
        return items

    def dictionary(self) -> Dictionary:
        """Read a dictionary ``{...}``."""
        lexer, start = self.lexer, self.lexer.start
        lexer.expect("{", "before a dictionary")
        dictionary = Dictionary()
        while lexer.token != "}":
            at, key = lexer.start, self._key()
            if key in dictionary:
                raise lexer.error(f"{key[:40]!r} appears twice", at)
            dictionary[key] = self.attribute() if lexer.accept("=") else True
            if not lexer.accept(","):
                break
        dictionary.text = lexer.text[start : lexer.end]
        lexer.expect("}", "after a dictionary")
        return dictionary

    def _key(self) -> str:
        if self.lexer.token[:1] == '"':
            return unquote(self.lexer.next())
        return self.lexer.word("the name of an attribute")

    # Words

    def _true(self) -> bool:
        self.lexer.next()
        return self._read_type(True) is True

    def _false(self) -> bool:
        self.lexer.next()
        return self._read_type(False) is True

    def _number_type(self) -> tuple[ElementType, bool]:
        """Return the type of a number, and True if it is explicitly signed."""
        lexer = self.lexer
        start, is_signed, shape = lexer.start, lexer.token.startswith("si"), self.types.type()
        if not shape.is_array or shape.rank or shape.dtype.is_complex:
            raise lexer.error(f"a number is not a {shape}", start, hint="give a type of integers or floats")
        return shape.dtype, is_signed

    def _array(self) -> tuple[Any, ...]:
        lexer = self.lexer
        lexer.next()
        lexer.expect("<", "after array")
        kind, is_signed = self._number_type()
        items: list[Any] = []
        if lexer.accept(":"):
            items.append(self._element(kind, is_signed))
            while lexer.accept(","):
                items.append(self._element(kind, is_signed))
        lexer.expect(">", "at the end of an array")
        return tuple(items)

    def _element(self, kind: ElementType, is_signed: bool) -> Any:
        lexer, start = self.lexer, self.lexer.start
        if lexer.token in ("true", "false"):
            return lexer.next() == "true"
        if lexer.token.lstrip("-").isdecimal():
            value = lexer.integer("a number")
            return value if kind.is_float else self._checked_integer(value, kind, start, is_signed)
        if _FLOAT.fullmatch(lexer.token):
            return float(lexer.next())
        raise lexer.error(f"expected a number, found {lexer.next_token()}")

    def dense(self) -> Dense:
        """Read ``dense<...> : type``."""
        lexer, start = self.lexer, self.lexer.start
        m = _DENSE.match(lexer.text, start)
        if m is None:
            raise lexer.error("expected the elements of a dense attribute", start)
        lexer.jump(m.end())
        lexer.expect(":", "before the type of a dense attribute")
        return self._literal(lambda shape: elements_of(m[1], shape), start)

    def _resource(self) -> Dense:
        lexer, start = self.lexer, self.lexer.start
        lexer.next()
        key = lexer.balanced("a resource")[1:-1].strip()
        lexer.expect(":", "before the type of a resource")
        if self._resources is None:
            matches = _RESOURCE.findall(lexer.text, max(lexer.text.rfind("{-#"), 0))
            self._resources = {k: bytes.fromhex(v[: len(v) & ~1])[4:] for k, v in matches}
        data = self._resources.get(key)
        if data is None:
            raise lexer.error(f"resource {key[:40]!r} is not in the text", start)
        return self._literal(lambda shape: from_bytes(data, shape), start)

    def _literal(self, make_array: Callable[[Shape], np.ndarray[Any, Any]], start: int) -> Dense:
        lexer, at = self.lexer, self.lexer.start
        shape = self.types.type()
        if not shape.is_array:
            raise lexer.error(f"a dense attribute is an array, not a {shape}", at)
        try:
            array = make_array(shape)
            return Dense(shape, Literal(array, shape.with_dims(array.shape)))
        except DenseError as e:
            raise lexer.error(str(e), start) from None

    def _opaque_word(self) -> Opaque:
        word = self.lexer.next()
        return Opaque(word + (self.lexer.balanced(word) if self.lexer.token == "<" else ""))

    def _unsupported(self) -> Any:
        raise unsupported(self.lexer, f"an attribute {self.lexer.token}<...>", self.lexer.start)

    # Dialects

    def _dialect(self) -> Any:
        lexer, start, name = self.lexer, self.lexer.start, self.lexer.next()[1:]
        if lexer.token != "<" or name in self.aliases:
            if name not in self.aliases:
                raise lexer.error(f"#{name[:40]} is not defined", start)
            return self.aliases[name]
        if not name.startswith(("stablehlo", "mhlo", "chlo")):
            return Opaque(f"#{name}{lexer.balanced(name)}")
        return self.record(name.rpartition(".")[2])

    def record(self, name: str) -> Any:
        """Read ``<key = value, ..>``, ``<kind WORD>`` or ``<WORD>``."""
        lexer, begin = self.lexer, self.lexer.start
        if lexer.peek() == ">" or name == "conv":
            return Record(name, {}) if lexer.balanced(name) == "<>" else self._conv(begin)
        lexer.next()
        if not (lexer.token[:1].isalpha() or lexer.token[:1] == "_"):
            lexer.jump(begin)
            return Opaque(f"#{name}{lexer.balanced(name)}")
        after = lexer.peek()
        if after == "=":
            return Record(name, self._fields())
        word = lexer.next()
        if after != ">" and lexer.peek() == ">":
            word = lexer.next()
        if lexer.token != ">":
            lexer.jump(begin)
            return Opaque(f"#{name}{lexer.balanced(name)}")
        lexer.next()
        return Keyword(word)

    def _conv(self, begin: int) -> Any:
        lexer = self.lexer
        lexer.jump(begin)
        lexer.next()
        if lexer.token == "raw":
            lexer.next()
            return Record("conv", self._fields())
        dims = self.conv_dims()
        lexer.expect(">", "after dimension numbers")
        return dims

    def _fields(self) -> dict[str, Any]:
        lexer = self.lexer
        fields: dict[str, Any] = {}
        while lexer.token != ">":
            key = lexer.word("the name of a field")
            lexer.expect("=", f"after {key[:40]}")
            fields[key] = self.value()
            if not lexer.accept(","):
                break
        lexer.expect(">", "after the last field")
        return fields

    def value(self) -> Any:
        """Read an attribute, or a bare word."""
        token = self.lexer.token
        if (token[:1].isalpha() or token[:1] == "_") and token not in _WORDS and token not in ("tensor", "tuple"):
            return Keyword(self.lexer.next())
        if token == "<":
            return self.record("")
        return self.attribute()

    def untyped(self) -> Any:
        """Read a value in a pretty form: the operation's types follow, but no type of a number."""
        lexer, token = self.lexer, self.lexer.token
        if token[:1] == '"':
            return unquote(lexer.next())
        if token in ("true", "false"):
            return lexer.next() == "true"
        if token.lstrip("-").isdecimal():
            return lexer.integer("a number")
        return self.value()

    def conv_dims(self) -> Record:
        """Read ``[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]``."""
        parts = [self._labels()]
        for mark in ("x", "->"):
            self.lexer.expect(mark, "in dimension numbers")
            parts.append(self._labels())
        return Record("conv", dict(zip(("input", "kernel", "output"), parts, strict=True)))

    def _labels(self) -> tuple[str, ...]:
        lexer = self.lexer
        lexer.expect("[", "before dimension numbers")
        labels = []
        while lexer.token != "]":
            if not lexer.token.isalnum() and lexer.token != "?":
                raise lexer.error(f"expected a dimension, found {lexer.next_token()}")
            labels.append(lexer.next())
            if not lexer.accept(","):
                break
        lexer.expect("]", "after dimension numbers")
        return tuple(labels)

    # Locations

    def location(self) -> Location | str:
        """Read ``loc(...)``; an alias stays a name, because it may be defined later."""
        lexer = self.lexer
        lexer.expect("loc", "before a location")
        lexer.expect("(", "after loc")
        location = self._location()
        lexer.expect(")", "after a location")
        return location

    def _location(self) -> Location | str:
        lexer, token = self.lexer, self.lexer.token
        if token[:1] == "#":
            return lexer.next()[1:]
        lexer.enter()
        location = self._named_location() if token[:1] == '"' else self._structured_location()
        lexer.leave()
        return location

    def _named_location(self) -> Location:
        lexer, text = self.lexer, unquote(self.lexer.next())
        if lexer.accept(":"):
            line = lexer.integer("a line")
            column = lexer.integer("a column") if lexer.accept(":") else 0
            if lexer.accept("to"):
                if lexer.token != ":":
                    lexer.integer("a line")
                lexer.expect(":", "before a column")
                lexer.integer("a column")
            return Location(file=text, line=line, column=column)
        if not lexer.accept("("):
            return Location(name=text)
        inner = self._location()
        lexer.expect(")", "after a location")
        return Location(name=text, inner=inner)

    def _structured_location(self) -> Location | str:
        lexer = self.lexer
        word = lexer.word("a location")
        if word == "unknown":
            return Location()
        if word == "callsite":
            lexer.expect("(", "after callsite")
            location = self._location()
            lexer.expect("at", "between two locations")
            self._location()
            lexer.expect(")", "after a call site")
            return location
        if word != "fused":
            raise lexer.error(f"{word[:40]!r} is not a location")
        if lexer.token == "<":
            lexer.balanced("a fused location")
        lexer.expect("[", "after fused")
        parts = [self._location()]
        while lexer.accept(","):
            parts.append(self._location())
        lexer.expect("]", "after fused locations")
        return parts[0]


_WORDS: dict[str, Any] = {
    "true": AttributeReader._true, "false": AttributeReader._false, "unit": AttributeReader._true,
    "array": AttributeReader._array, "dense": AttributeReader.dense, "dense_resource": AttributeReader._resource,
    "loc": AttributeReader.location, "affine_map": AttributeReader._opaque_word,
    "affine_set": AttributeReader._opaque_word, "strided": AttributeReader._opaque_word,
    "sparse": AttributeReader._unsupported, "distinct": AttributeReader._unsupported,
}  # fmt: skip


def resolve(location: Location | str | None, aliases: dict[str, Any]) -> Location:
    """Return a location's name, and the file and line of the innermost location that has them."""
    name, depth = "", 0
    while location is not None and depth < 64:
        depth += 1
        if isinstance(location, str):
            location = aliases.get(location)
        elif isinstance(location, Location):
            name = name or location.name
            if location.file or location.inner is None:
                return Location(name, location.file, location.line, location.column)
            location = location.inner
        else:
            break
    return Location(name)
