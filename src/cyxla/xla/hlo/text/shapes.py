"""Parser of shapes and layouts."""

from __future__ import annotations

import re

from cyxla.errors import DTypeError, ShapeError, UnimplementedError
from cyxla.types import COMBINE, UNBOUNDED, ElementType, Layout, Shape, SplitConfig, element_type, is_element_type
from cyxla.xla.hlo.text.lexer import WS, Cursor, Pattern, blank_comments

# Braces after the sizes are a layout if they begin with a dimension number or a colon, as in `{1,0}` and `{:S(2)}`.
_LAYOUT = rf"(?:\{{\}}|{WS}\{{{WS}[0-9:][^{{}}]*+(?:\{{[^{{}}]*+\}}[^{{}}]*+)*+\}})?+"
ARRAY = rf"[a-z][a-z0-9]*+\[[^\[\](){{}}\x22]*+\]{_LAYOUT}"  # for use inside larger patterns
_ARRAY = Pattern(f"({ARRAY})")
_PARTS = re.compile(r"([a-z0-9]+)\[([^\]]*)\](?:[ \t\r\n]*\{(.*)\})?", re.DOTALL)
_PLAIN_SIZES = re.compile(r"[0-9]{1,18}(?:,[0-9]{1,18})*")
_SIZE = Pattern(r"(<=)?([0-9]++|\?)(?![\w.\-])")
_EXTRA = Pattern(r"(SC|D|T|L|E|S|P|M|#|\*)\(")
_OPEN = Pattern(r"([a-z][a-z0-9]*+)\[")
_BUFFER = Pattern(r"b\(")
_DIM_LEVEL = Pattern(r"([DCSHLdcshl]\+?~?)")
_NOT_DENSE = (ElementType.TUPLE, ElementType.BUFFER)


class ShapeReader:
    """Parser of shapes through one cursor; equal texts are parsed once."""

    __slots__ = ("_shape_of_text", "cursor")

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self._shape_of_text: dict[str, Shape] = {}

    def read(self) -> Shape:
        """Read a shape: an array, token, opaque or a tuple of shapes."""
        c = self.cursor
        m = c.match(_ARRAY)
        if m is not None:
            return self.array(m.group(1), m.start(1))
        if c.at("("):
            return self._tuple()
        if (m := _OPEN.match(c.text, c.pos)) is not None and is_element_type(m.group(1)):
            c.pos = m.end()
            self._sizes("?", c.pos)
            raise c.error(f"expected ']' after the sizes of dimensions, found {c.next_token()}")
        if c.match(_BUFFER):
            raise UnimplementedError("buffer shapes b(..) are not supported")
        raise c.error(f"expected a shape, found {c.next_token()}")

    def array(self, text: str, at: int) -> Shape:
        """Return the shape of a match of `ARRAY`."""
        shape = self._shape_of_text.get(text)
        if shape is None:
            outer = self.cursor.pos
            shape = self._shape_of_text[text] = self._parse(text, at)
            self.cursor.pos = outer
        return shape

    def _tuple(self) -> Shape:
        """Read a tuple with an explicit stack, because Python's is short."""
        c = self.cursor
        open_: list[list[Shape]] = []
        while True:
            if c.accept("("):
                c.enter()
                open_.append([])
                if not c.at(")"):
                    continue
            else:
                m = c.match(_ARRAY)
                if m is None:
                    raise c.error(f"expected a shape, found {c.next_token()}")
                open_[-1].append(self.array(m.group(1), m.start(1)))
            while not c.accept(","):
                c.expect(")", "at the end of a tuple shape")
                c.leave()
                done = Shape.tuple(open_.pop())
                if not open_:
                    return done
                open_[-1].append(done)

    def _parse(self, text: str, at: int) -> Shape:
        c = self.cursor
        m = _PARTS.fullmatch(text)
        assert m is not None
        try:
            dtype = element_type(m.group(1))
        except DTypeError as e:
            raise c.error(e.message, at) from None
        if dtype in _NOT_DENSE:
            raise c.error(f"{dtype}[..] is not a shape", at)
        dims, dynamic = self._sizes(m.group(2), at + m.start(2))
        if dims and not dtype.is_array:
            raise c.error(f"{dtype} has no dimensions", at)
        layout = self._layout(m.group(3), at + m.start(3)) if m.group(3) is not None else None
        if layout is not None and not (layout.minor_to_major or dims) and str(layout) == "{}":
            layout = None  # `f32[]{}` is not a layout
        try:
            Shape.array(dtype, dims, dynamic=dynamic)
        except ShapeError as e:
            raise c.error(e.message, at) from None
        try:
            return Shape.array(dtype, dims, dynamic=dynamic, layout=layout)
        except ShapeError as e:
            c.pos = at + len(text)
            raise c.error(e.message) from None

    def _sizes(self, inner: str, at: int) -> tuple[tuple[int, ...], tuple[bool, ...]]:
        if _PLAIN_SIZES.fullmatch(inner):
            return tuple(map(int, inner.split(","))), ()
        if not inner.strip():
            return (), ()
        c = self.cursor
        c.pos = at
        dims: list[int] = []
        dynamic: list[bool] = []
        while True:
            start = c.skip()
            m = c.match(_SIZE)
            if m is None:
                raise c.error(f"expected the size of a dimension, found {c.next_token()}", start)
            unbounded = m.group(2) == "?"
            if unbounded and m.group(1):
                raise c.error("a dimension is `<=n` or `?`", start)
            dims.append(UNBOUNDED if unbounded else c.bounded(m.group(2), "size", start, 0))
            dynamic.append(unbounded or m.group(1) is not None)
            if not c.accept(","):
                return tuple(dims), tuple(dynamic)

    def _layout(self, inner: str, at: int) -> Layout:
        order, colon, _ = inner.partition(":")
        c = self.cursor
        minor = c.integers(order, "a dimension", at, 0)
        if not colon:
            return Layout(minor)
        c.pos = at + len(order) + 1
        end = at + len(inner)
        facts: dict[str, object] = {}
        while c.skip() < end:
            start = c.pos
            m = c.match(_EXTRA)
            if m is None:
                raise c.error(f"unknown part of a layout: {c.next_token()}", start)
            field = _FIELDS[m.group(1)]
            if field in facts:
                raise c.error(f"{m.group(1)}(..) appears twice in a layout", start)
            facts[field] = _EXTRAS[m.group(1)](self)
        return Layout(minor, **facts)  # type: ignore[arg-type]

    def _number(self) -> int:
        value = self.cursor.integer("a number", 0)
        self.cursor.expect(")", "in a layout")
        return value

    def _tiles(self) -> tuple[tuple[int, ...], ...]:
        c = self.cursor
        tiles = [self._tile()]
        while c.at("("):
            c.accept("(")
            tiles.append(self._tile())
        return tuple(tiles)

    def _tile(self) -> tuple[int, ...]:
        c = self.cursor
        dims: list[int] = []
        while not c.accept(")"):
            if dims:
                c.expect(",", "between sizes of a tile")
            dims.append(COMBINE if c.accept("*") else c.integer("size of a tile", 0))
        return tuple(dims)

    def _splits(self) -> tuple[SplitConfig, ...]:
        c = self.cursor
        splits = []
        while True:
            dim = c.integer("a dimension", 0)
            c.expect(":", "after the dimension that is split")
            indices = [c.integer("an index", 0)]
            while c.accept(","):
                indices.append(c.integer("an index", 0))
            c.expect(")", "after the indices of a split")
            splits.append(SplitConfig(dim, tuple(indices)))
            if not c.accept("("):
                return tuple(splits)

    def _levels(self) -> tuple[str, ...]:
        c = self.cursor
        levels: list[str] = []
        while not c.accept(")"):
            if levels:
                c.expect(",", "between dimension levels")
            m = c.match(_DIM_LEVEL)
            if m is None:
                raise c.error(f"expected a dimension level such as D or C, found {c.next_token()}")
            levels.append(m.group(1))
        return tuple(levels)

    def _primitive(self) -> str:
        c = self.cursor
        start = c.skip()
        try:
            dtype = element_type(c.name("an element type"))
        except DTypeError as e:
            raise c.error(e.message, start) from None
        c.expect(")", "after the element type")
        return dtype.text

    def _physical(self) -> str:
        shape = self.read()
        self.cursor.expect(")", "after the physical shape")
        return shape.to_text()


# mark -> (field of Layout), (parser of the argument in parentheses)
_FIELDS = {
    "D": "dim_level_types", "T": "tiles", "L": "tail_padding_alignment", "#": "index_primitive_type",
    "*": "pointer_primitive_type", "E": "element_size_in_bits", "S": "memory_space", "SC": "split_configs",
    "P": "physical_shape", "M": "dynamic_shape_metadata_prefix_bytes",
}  # fmt: skip
_EXTRAS = {
    "D": ShapeReader._levels, "T": ShapeReader._tiles, "L": ShapeReader._number, "#": ShapeReader._primitive,
    "*": ShapeReader._primitive, "E": ShapeReader._number, "S": ShapeReader._number, "SC": ShapeReader._splits,
    "P": ShapeReader._physical, "M": ShapeReader._number,
}  # fmt: skip


def parse_shape(text: str) -> Shape:
    """Read a shape such as ``f32[2,3]{1,0}`` or ``(s32[], pred[4])``.

    Raises
    ------
    HloParseError
        The text is not a shape, or has more after it.
    """
    cursor = Cursor(blank_comments(text))
    shape = ShapeReader(cursor).read()
    if cursor.skip() != len(cursor.text):
        raise cursor.error(f"expected the end of the shape, found {cursor.next_token()}")
    return shape
