"""MLIR's types as shapes."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from cyxla.errors import OpError, UnimplementedError
from cyxla.types import OPAQUE, TOKEN, ElementType, Shape, element_type, is_element_type
from cyxla.types.shape import UNBOUNDED
from cyxla.xla.hlo.limits import MAX_RANK
from cyxla.xla.stablehlo.lexer import MAX_NESTING, Lexer

MAX_PARTS: Final = 1 << 16  # of a tuple, nested ones included
_TENSOR = re.compile(
    r"tensor\s*+<\s*+((?:(?:[0-9]++|\?)\s*+x\s*+)*+)(complex\s*+<\s*+\w++\s*+>|[A-Za-z]\w*+)\s*+([,>])", re.ASCII
)
_BOUNDS = re.compile(r"#(?:stablehlo|mhlo)\.(?:bounds\s*<([^<>]*)>|type_extensions\s*<\s*bounds\s*=\s*\[([^\]]*)\])")
_COMPLEX = re.compile(r"complex\s*+<\s*+(\w++)\s*+>")
_INTEGER = re.compile(r"(s|u|)i([0-9]++)")
_KNOWN = re.compile(r"complex\s*<.*>|[su]?i[0-9]+|tf32|f[0-9]+\w*")  # valid in MLIR
_SCALARS = {"index": ElementType.S64, "i1": ElementType.PRED}
_TOKENS = ("!stablehlo.token", "!mhlo.token", "!chlo.token")


class FunctionType(NamedTuple):
    """Types of a function's arguments and results."""

    inputs: tuple[Shape, ...]
    results: tuple[Shape, ...]


def element(name: str) -> ElementType | None:
    """Return the element type of an MLIR name; signless integers are signed."""
    if name in _SCALARS:
        return _SCALARS[name]
    m = _INTEGER.fullmatch(name)
    text = f"{'u' if m[1] == 'u' else 's'}{m[2]}" if m else name.lower()
    if m is None and not name.startswith(("f", "bf")):
        return None
    return element_type(text) if is_element_type(text) else None


def element_of(lexer: Lexer, text: str, at: int) -> ElementType:
    """Return the element type of a text, or raise if it is unknown."""
    m = _COMPLEX.fullmatch(text)
    dtype = element(m[1] if m else text)
    if m:
        dtype = {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}.get(dtype or ElementType.S8)
    if dtype is None and _KNOWN.fullmatch(text):
        raise unsupported(lexer, f"element type {text[:40]}", at)
    if dtype is None:
        raise lexer.error(f"expected an element type, found {text[:40]!r}", at)
    return dtype


def unsupported(lexer: Lexer, feature: str, at: int, hint: str = "") -> UnimplementedError:
    """Return the error for a part of MLIR that cyxla does not support."""
    line, column = lexer.line_and_column(at)
    return UnimplementedError(
        f"{line}:{column}: {feature} is not supported in this release", where=f"line {line}", hint=hint
    )


class TypeReader:
    """Parser of types; equal texts of tensors are parsed once.

    Parameters
    ----------
    lexer : Lexer
        Lexer of the text.

    Attributes
    ----------
    aliases : dict
        Types that the text has defined, by ``!name``.
    """

    def __init__(self, lexer: Lexer) -> None:
        self.lexer = lexer
        self.aliases: dict[str, Shape | FunctionType] = {}
        self._tensors: dict[str, Shape] = {}
        self._extents: dict[Shape, tuple[int, int]] = {}  # number of parts and depth of each tuple

    def type(self) -> Shape:
        """Read the type of a value."""
        lexer, token = self.lexer, self.lexer.token
        if token == "tensor":
            return self._tensor()
        if token == "tuple":
            return self._tuple()
        if token in _TOKENS:
            lexer.next()
            return TOKEN
        if token == "none":
            lexer.next()
            return OPAQUE
        if token == "complex":
            start = lexer.start
            lexer.next()
            return Shape.array(element_of(lexer, "complex" + lexer.balanced("complex"), start))
        if token.isalnum() and (dtype := element(token)) is not None:
            lexer.next()
            return Shape.array(dtype)
        if token[:1] == "!" and (token in self.aliases or "." not in token):
            return self._aliased_type()
        if token[:1] == "!" or token in ("memref", "vector"):
            raise unsupported(lexer, f"type {token[:40]}", lexer.start)
        raise lexer.error(f"expected a type, found {lexer.next_token()}")

    def _aliased_type(self) -> Shape:
        lexer, start = self.lexer, self.lexer.start
        alias = self.alias()
        if isinstance(alias, FunctionType):
            raise lexer.error("expected the type of a value, this one is a function's", start)
        return alias

    def alias(self) -> Shape | FunctionType:
        """Read the name of a type that the text has defined."""
        alias = self.aliases.get(self.lexer.token)
        if alias is None:
            raise self.lexer.error(f"{self.lexer.token[:40]} is not defined")
        self.lexer.next()
        return alias

    def define(self) -> None:
        """Read ``!name = type``."""
        lexer, start, name = self.lexer, self.lexer.start, self.lexer.next()
        if name in self.aliases or name in _TOKENS:
            raise lexer.error(f"{name[:40]} is defined twice", start)
        lexer.expect("=", "after the name of a type")
        self.aliases[name] = self.any()

    def any(self) -> Shape | FunctionType:
        """Read the type of a value or of a function."""
        if self.lexer.token == "(":
            return self.function_type()
        return self.alias() if self.lexer.token in self.aliases else self.type()

    def _tensor(self) -> Shape:
        lexer, start = self.lexer, self.lexer.start
        m = _TENSOR.match(lexer.text, start)
        if m is None:
            raise self._not_a_tensor(start)
        if m[3] == ">":
            shape = self._tensors.get(m[0])
            if shape is None:
                shape = self._tensors[m[0]] = self._array(m, start)
            lexer.jump(m.end())
            return shape
        lexer.next()
        return self._array(m, start, lexer.balanced("a tensor type"))

    def _not_a_tensor(self, start: int) -> OpError:
        lexer = self.lexer
        lexer.next()
        inside = lexer.balanced("a tensor type")
        if inside.startswith("<*"):
            return unsupported(lexer, "an unranked tensor", start)
        if "!quant" in inside:
            return unsupported(lexer, "a quantised element type", start, "dequantise before exporting")
        return lexer.error(f"expected a tensor type such as tensor<2x3xf32>, found {inside[:40]!r}", start)

    def _array(self, m: re.Match[str], start: int, full_text: str = "") -> Shape:
        dtype = element_of(self.lexer, m[2], start)
        sizes = [s.strip() for s in m[1].split("x")[:-1]]
        if len(sizes) > MAX_RANK:
            raise self.lexer.error(f"a tensor of {len(sizes)} dimensions; {MAX_RANK} is the limit", start)
        if any(len(s) > 19 for s in sizes):
            raise self.lexer.error("a tensor of more than 2^63 - 1 elements", start)
        dims = [UNBOUNDED if s == "?" else int(s) for s in sizes]
        dynamic = [s == "?" for s in sizes]
        bounds = _BOUNDS.search(full_text)
        if bounds is not None:
            dims = self._add_bounds(dims, bounds[1] if bounds[1] is not None else bounds[2], start)
        try:
            return Shape.array(dtype, dims, dynamic=dynamic)
        except OpError as e:
            raise self.lexer.error(e.message, start) from None

    def _add_bounds(self, dims: list[int], text: str, start: int) -> list[int]:
        bounds = [b.strip() for b in text.split(",")]
        if len(bounds) != len(dims) or not all(b == "?" or (b.isdecimal() and len(b) < 19) for b in bounds):
            raise self.lexer.error(f"bounds {text.strip()[:40]!r} do not fit the {len(dims)} dimensions", start)
        for k, (d, b) in enumerate(zip(dims, bounds, strict=True)):
            if b != "?" and d != UNBOUNDED:
                raise self.lexer.error(
                    f"dimension {k} has the size {d}, and a bound {b}, which is for open sizes", start
                )
        return [d if b == "?" else int(b) for d, b in zip(dims, bounds, strict=True)]

    def _tuple(self) -> Shape:
        lexer, start = self.lexer, self.lexer.start
        lexer.next()
        lexer.expect("<", "after tuple")
        lexer.enter()
        parts = [] if lexer.token == ">" else self.types()
        lexer.leave()
        lexer.expect(">", "at the end of a tuple type")
        shape = Shape.tuple(parts)
        if shape not in self._extents:
            self._extents[shape] = self._extent(shape, start)
        return shape

    def _extent(self, shape: Shape, start: int) -> tuple[int, int]:
        """Return the number of parts and the depth of a tuple, which a few aliases can make huge."""
        inner = [self._extents.get(e, (1, 0)) for e in shape.elements]
        parts, depth = 1 + sum(n for n, _ in inner), 1 + max((d for _, d in inner), default=0)
        if parts > MAX_PARTS or depth > MAX_NESTING:
            fault = "of too many parts" if parts > MAX_PARTS else "nested too deep"
            raise self.lexer.error(f"a tuple {fault}", start)
        return parts, depth

    def types(self) -> list[Shape]:
        """Read types separated by commas."""
        types = [self.type()]
        while self.lexer.accept(","):
            types.append(self.type())
        return types

    def type_list(self) -> list[Shape]:
        """Read types in parentheses."""
        self.lexer.expect("(", "before types")
        types = [] if self.lexer.token == ")" else self.types()
        self.lexer.expect(")", "after types")
        return types

    def results(self) -> list[Shape]:
        """Read a type, or several in parentheses."""
        return self.type_list() if self.lexer.token == "(" else [self.type()]

    def function_type(self) -> FunctionType:
        """Read ``(types) -> types``."""
        inputs = self.type_list()
        self.lexer.expect("->", "in a function's type")
        return FunctionType(tuple(inputs), tuple(self.results()))
