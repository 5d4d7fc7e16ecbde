"""Attributes as text: a parser and a printer for each kind of value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.errors import HloParseError
from cyxla.records import dataclass
from cyxla.xla.hlo.attributes import (
    Alias,
    ConvDims,
    DomainAttr,
    FrontendAttributes,
    Metadata,
    PaddingDim,
    ReplicaGroups,
    ResultAccuracy,
    SliceDim,
    WindowDim,
)
from cyxla.xla.hlo.text.lexer import WS, Cursor, Pattern, balanced_end, quote, unescape
from cyxla.xla.hlo.text.literals import literal_text, read_literal
from cyxla.xla.hlo.text.mesh import at_mesh, read_mesh_groups
from cyxla.xla.hlo.text.shapes import ShapeReader
from cyxla.xla.hlo.text.sharding import iota_text, read_iota, read_sharding, sharding_text


@dataclass(frozen=True)
class Kind:
    """Parser and printer of one kind of attribute value."""

    read: Callable[[ShapeReader], Any]
    write: Callable[[Any], str]


_DIMS = Pattern(r"\{([0-9, \t\r\n-]*+)\}")
_WORD = Pattern(r"([\w.\-]++)")
_FLOAT = Pattern(r"(-?+(?:[0-9]++(?:\.[0-9]*+)?+(?:[eE][+-]?+[0-9]++)?+|inf|nan))(?![\w.])")
_SLICE = Pattern(rf"\[{WS}([0-9]++){WS}:{WS}([0-9]++){WS}(?::{WS}([0-9]++){WS})?\]")
_N = "-?[0-9]{1,19}"
_PADDING = Pattern(rf"({_N}_{_N}(?:_{_N})?(?:x{_N}_{_N}(?:_{_N})?)*+)(?![\w])")
_EMPTY = Pattern(r"(?=[,})]|ROOT[ \t\r\n]|%?[A-Za-z_][\w.\-]*+[ \t\r\n]++=|\Z)")
_WINDOW_FIELD = Pattern(r"([a-z_]++)=")
_BY_X = Pattern(rf"({_N}(?:x{_N})*+)(?![\w])")
_PAD_BY_X = Pattern(rf"({_N}_{_N}(?:x{_N}_{_N})*+)(?![\w])")
_DIM_LABELS = Pattern(r"([a-z0-9?]++)_([a-z0-9?]++)->([a-z0-9?]++)")
_KEY = Pattern(rf"(?:([\w.\-/:$@]++)|\"((?:[^\"\\]|\\[\s\S])*+)\"){WS}=")
_PRECISIONS = ("default", "high", "highest", "packed_nibble")


def _dims(s: ShapeReader) -> tuple[int, ...]:
    c = s.cursor
    m = c.match(_DIMS)
    if m is None:
        c.expect("{", "at the start of a list of numbers")
        c.integer("a number")
        raise c.error(f"expected ',' or '}}' in a list of numbers, found {c.next_token()}")
    return c.integers(m.group(1), "a number", m.start(1))


def dims_text(dims: tuple[int, ...]) -> str:
    """Return the text of dimension numbers, such as ``{0,1}``."""
    return "{" + ",".join(map(str, dims)) + "}"


def _braced_list(c: Cursor, item: Callable[[], Any], name: str) -> tuple[Any, ...]:
    """Read ``{item, item}``."""
    c.expect("{", f"at the start of {name}")
    items: list[Any] = []
    while not c.accept("}"):
        if items:
            c.expect(",", f"between the parts of {name}")
        items.append(item())
    return tuple(items)


def _dims_list(s: ShapeReader) -> tuple[tuple[int, ...], ...]:
    return _braced_list(s.cursor, lambda: _dims(s), "a list of lists")


def _dims_list_text(lists: tuple[tuple[int, ...], ...]) -> str:
    return "{" + ",".join(map(dims_text, lists)) + "}"


def _bool(s: ShapeReader) -> bool:
    return _choice(s, ("true", "false")) == "true"


def _bool_text(value: bool) -> str:
    return "true" if value else "false"


def _tristate(s: ShapeReader) -> bool | None:
    return {"true": True, "false": False, "any": None}[_choice(s, ("true", "false", "any"))]


def _choice(s: ShapeReader, options: tuple[str, ...], *, any_case: bool = False) -> str:
    c = s.cursor
    start = c.skip()
    m = c.match(_WORD)
    if m is not None and any_case and m.group(1).lower() in options:
        return m.group(1).lower()
    if m is None or m.group(1) not in options:
        c.pos = start
        raise c.error(f"expected one of {', '.join(options)}; found {c.next_token()}", start)
    return m.group(1)


def enum_reader(kind: str) -> Callable[[ShapeReader], str]:
    """Return the parser of an ``enum:A,B``."""
    options = tuple(kind.removeprefix("enum:").split(","))
    any_case = all(word.islower() for word in options)  # XLA reads its lower-case words in any case
    return lambda s: _choice(s, options, any_case=any_case)


def _double(s: ShapeReader) -> float:
    c = s.cursor
    m = c.match(_FLOAT)
    if m is None:
        raise c.error(f"expected a number, found {c.next_token()}")
    value = float(m.group(1))
    if value in (float("inf"), float("-inf")) and "inf" not in m.group(1):
        raise c.error("number is out of range", m.start(1))
    return value


def _float(s: ShapeReader) -> float:
    """Read a number in single precision."""
    at = s.cursor.skip()
    wide = _double(s)
    with np.errstate(over="ignore"):
        value = float(np.float32(wide))
    if np.isinf(value) and not np.isinf(wide):
        raise s.cursor.error("number is out of range", at)
    return value


def _float_text(value: float) -> str:
    return str(np.float32(value)).removesuffix(".0")


def _double_text(value: float) -> str:
    return repr(value).removesuffix(".0")


def _slice(s: ShapeReader) -> tuple[SliceDim, ...]:
    c = s.cursor

    def read_dim() -> SliceDim:
        m = c.match(_SLICE)
        if m is None:
            raise _bad_slice(c)
        bounds = [c.bounded(m.group(g), "a bound", m.start(g)) if m.group(g) else 1 for g in (1, 2, 3)]
        return SliceDim(*bounds)

    return _braced_list(c, read_dim, "slice ranges")


def _bad_slice(c: Cursor) -> HloParseError:
    c.expect("[", "of [start:limit] or [start:limit:stride]")
    c.integer("the start of a slice", 0)
    c.expect(":", "after the start of a slice")
    c.integer("the limit of a slice", 0)
    if c.accept(":"):
        c.integer("the stride of a slice", 0)
    return c.error(f"expected ']' at the end of a slice, found {c.next_token()}")


def _slice_text(dims: tuple[SliceDim, ...]) -> str:
    return "{" + ", ".join(f"[{d.start}:{d.limit}" + (f":{d.stride}]" if d.stride != 1 else "]") for d in dims) + "}"


def _padding(s: ShapeReader) -> tuple[PaddingDim, ...]:
    c = s.cursor
    m = c.match(_PADDING)
    if m is None:
        if c.match(_EMPTY):  # a scalar has no dimensions to pad
            return ()
        raise c.error(f"expected a padding such as 0_0x1_2_1, found {c.next_token()}")
    return tuple(PaddingDim(*_numbers(c, part.split("_"), m.start(1))) for part in m.group(1).split("x"))


def _numbers(c: Cursor, digits: list[str], at: int) -> list[int]:
    return [c.bounded(d, "number", at) for d in digits]


def _padding_text(dims: tuple[PaddingDim, ...]) -> str:
    interior = any(d.interior for d in dims)
    return "x".join(f"{d.low}_{d.high}_{d.interior}" if interior else f"{d.low}_{d.high}" for d in dims)


# field in text -> (fields of WindowDim, value that is omitted)
_WINDOW = {
    "size": (("size",), 1),
    "stride": (("stride",), 1),
    "pad": (("padding_low", "padding_high"), 0),
    "lhs_dilate": (("base_dilation",), 1),
    "rhs_dilate": (("window_dilation",), 1),
    "rhs_reversal": (("window_reversal",), 0),
}


def _window(s: ShapeReader) -> tuple[WindowDim, ...]:
    c = s.cursor
    c.expect("{", "at the start of a window")
    columns: dict[str, list[list[int]]] = {}
    start = c.pos - 1
    while not c.accept("}"):
        if columns:
            c.accept(",")
        at = c.skip()
        m = c.match(_WINDOW_FIELD)
        if m is None or m.group(1) not in _WINDOW:
            raise c.error(f"expected one of {', '.join(_WINDOW)}; found {c.next_token()}", at)
        at = c.skip()
        if m.group(1) in columns:
            raise c.error(f"{m.group(1)} appears twice in a window", at)
        v = c.match(_PAD_BY_X if m.group(1) == "pad" else _BY_X)
        if v is None:
            raise c.error(f"malformed {m.group(1)} of a window: {c.next_token()}", at)
        columns[m.group(1)] = [_numbers(c, part.split("_"), at) for part in v.group(1).split("x")]
    return _window_dims(c, columns, start)


def _window_dims(c: Cursor, columns: dict[str, list[list[int]]], start: int) -> tuple[WindowDim, ...]:
    rank = len(columns.get("size", ()))
    for field, values in columns.items():
        if len(values) != rank:
            raise c.error(f"a window of {rank} sizes has {len(values)} of {field}", start)
    dims = []
    for i in range(rank):
        facts: dict[str, Any] = {}
        for field, values in columns.items():
            facts.update(zip(_WINDOW[field][0], values[i], strict=True))
        facts["window_reversal"] = bool(facts.get("window_reversal", 0))
        dims.append(WindowDim(**facts))
    return tuple(dims)


def _window_text(dims: tuple[WindowDim, ...]) -> str:
    parts = []
    for name, (fields, usual) in _WINDOW.items():
        rows = [[int(getattr(d, f)) for f in fields] for d in dims]
        if name == "size" or any(v != usual for row in rows for v in row):
            parts.append(f"{name}=" + "x".join("_".join(map(str, row)) for row in rows))
    return "{" + " ".join(parts) + "}" if dims else "{}"


def _dim_labels(s: ShapeReader) -> ConvDims:
    c = s.cursor
    m = c.match(_DIM_LABELS)
    if m is None:
        raise c.error(f"expected dimension labels such as b01f_01io->b01f, found {c.next_token()}")
    spatial = sum(ch.isdigit() for ch in m.group(1))
    lhs = _labels(c, m.group(1), "bf", spatial, m.start(1))
    kernel = _labels(c, m.group(2), "io", spatial, m.start(2))
    out = _labels(c, m.group(3), "bf", spatial, m.start(3))
    return ConvDims(*lhs, *kernel, *out)


def _labels(c: Cursor, text: str, letters: str, spatial: int, at: int) -> tuple[int, int, tuple[int, ...]]:
    labels = letters + "".join(map(str, range(min(spatial, 10))))
    if spatial > 10 or sorted(text.replace("?", "")) != sorted(labels):
        raise c.error(f"{text!r} does not label each of {', '.join(labels)} once", at)
    positions = [text.index(label) for label in labels]
    return positions[0], positions[1], tuple(positions[2:])


def _dim_labels_text(d: ConvDims) -> str:
    groups = (
        ((d.input_batch, "b"), (d.input_feature, "f"), d.input_spatial),
        ((d.kernel_input_feature, "i"), (d.kernel_output_feature, "o"), d.kernel_spatial),
        ((d.output_batch, "b"), (d.output_feature, "f"), d.output_spatial),
    )
    lhs, kernel, out = (_label_text(*g) for g in groups)
    return f"{lhs}_{kernel}->{out}"


def _label_text(first: tuple[int, str], second: tuple[int, str], spatial: tuple[int, ...]) -> str:
    label_of_dim = dict([first, second]) | {dim: str(i) for i, dim in enumerate(spatial)}
    return "".join(label_of_dim.get(i, "?") for i in range(max(label_of_dim) + 1))


def _precision(s: ShapeReader) -> tuple[str, ...]:
    precisions = _braced_list(s.cursor, lambda: _choice(s, _PRECISIONS, any_case=True), "operand_precision")
    return precisions if any(p != "default" for p in precisions) else ()


def _replica_groups(s: ShapeReader) -> ReplicaGroups:
    c = s.cursor
    if c.at("["):
        return ReplicaGroups(iota=read_iota(c))
    if at_mesh(c):
        return read_mesh_groups(c)
    return ReplicaGroups(_dims_list(s))


def _replica_groups_text(groups: ReplicaGroups) -> str:
    return iota_text(groups.iota) if groups.iota else _dims_list_text(groups.groups)


def _pairs(s: ShapeReader) -> tuple[tuple[int, int], ...]:
    pairs = _dims_list(s)
    if any(len(p) != 2 for p in pairs):
        raise s.cursor.error("source_target_pairs must contain pairs")
    return pairs  # type: ignore[return-value]


def _aliasing(s: ShapeReader) -> tuple[Alias, ...]:
    c = s.cursor

    def read_alias() -> Alias:
        output = _dims(s)
        c.expect(":", "after the index of an output")
        c.expect("(", "before the number of an operand")
        operand = c.integer("the number of an operand", 0)
        c.expect(",", "after the number of an operand")
        index = _dims(s)
        c.expect(")", "after the index of an operand")
        return Alias(output, operand, index)

    return _braced_list(c, read_alias, "output_to_operand_aliasing")


def _aliasing_text(aliases: tuple[Alias, ...]) -> str:
    parts = [f"{dims_text(a.output_index)}: ({a.operand}, {dims_text(a.operand_index)})" for a in aliases]
    return "{" + ", ".join(parts) + "}"


def _domain(s: ShapeReader) -> DomainAttr:
    c = s.cursor
    c.expect("{", "at the start of a domain")
    facts: dict[str, Any] = {}
    while not c.accept("}"):
        if facts:
            c.expect(",", "between the parts of a domain")
        at = c.skip()
        m = c.match(_WINDOW_FIELD)
        if m is None or m.group(1) not in ("kind", "entry", "exit") or m.group(1) in facts:
            raise c.error(f"expected kind=, entry= or exit=, found {c.next_token()}", at)
        facts[m.group(1)] = c.string("the kind of a domain") if m.group(1) == "kind" else read_sharding(c)
    if len(facts) != 3:
        raise c.error("a domain has kind, entry and exit")
    return DomainAttr(**facts)


def _domain_text(d: DomainAttr) -> str:
    return f"{{kind={quote(d.kind)}, entry={sharding_text(d.entry)}, exit={sharding_text(d.exit)}}}"


def _accuracy(s: ShapeReader) -> ResultAccuracy | None:
    c = s.cursor
    c.expect("{", "at the start of result_accuracy")
    at = c.skip()
    m = c.match(_WINDOW_FIELD)
    if m is not None and m.group(1) == "mode":
        accuracy = ResultAccuracy(_choice(s, ("default", "highest"), any_case=True))
    elif m is not None and m.group(1) == "tolerance":
        accuracy = _tolerance(s)
    else:
        raise c.error(f"expected mode= or tolerance=, found {c.next_token()}", at)
    c.expect("}", "at the end of result_accuracy")
    return accuracy if accuracy != ResultAccuracy() else None


def _tolerance(s: ShapeReader) -> ResultAccuracy:
    c = s.cursor
    facts: dict[str, Any] = {}
    c.expect("{", "after tolerance=")
    while not c.accept("}"):
        if facts:
            c.expect(",", "between tolerances")
        at = c.skip()
        m = c.match(_WINDOW_FIELD)
        if m is None or m.group(1) not in ("atol", "rtol", "ulps") or m.group(1) in facts:
            raise c.error(f"expected atol=, rtol= or ulps=, found {c.next_token()}", at)
        facts[m.group(1)] = c.integer("a count of ulps", 0) if m.group(1) == "ulps" else _double(s)
    return ResultAccuracy("tolerance", **facts)


def _accuracy_text(a: ResultAccuracy) -> str:
    if a.mode != "tolerance":
        return f"{{mode={a.mode}}}"
    return f"{{tolerance={{atol={_double_text(a.atol)},rtol={_double_text(a.rtol)},ulps={a.ulps}}}}}"


def _literal(s: ShapeReader) -> Any:
    return read_literal(s.cursor, s.read())


def _literal_attr_text(literal: Any) -> str:
    return f"{literal.shape.to_text()} {literal_text(literal)}"


def _shapes(s: ShapeReader) -> tuple[Any, ...]:
    return _braced_list(s.cursor, s.read, "a list of shapes")


def _shapes_text(shapes: tuple[Any, ...]) -> str:
    return "{" + ", ".join(shape.to_text() for shape in shapes) + "}"


# fmt: off
KINDS: dict[str, Kind] = {
    #                read                                      print
    "int":          Kind(lambda s: s.cursor.integer("a number"),   str),
    "bool":         Kind(_bool,                                    _bool_text),
    "tristate":     Kind(_tristate,                                _bool_text),
    "float":        Kind(_float,                                   _float_text),
    "string":       Kind(lambda s: s.cursor.string("a string"),    quote),
    "dims":         Kind(_dims,                                    dims_text),
    "dims_list":    Kind(_dims_list,                               _dims_list_text),
    "slice":        Kind(_slice,                                   _slice_text),
    "padding":      Kind(_padding,                                 _padding_text),
    "window":       Kind(_window,                                  _window_text),
    "dim_labels":   Kind(_dim_labels,                              _dim_labels_text),
    "precision":    Kind(_precision,                               lambda p: "{" + ",".join(p) + "}"),
    "replica_groups": Kind(_replica_groups,                        _replica_groups_text),
    "pairs":        Kind(_pairs,                                   _dims_list_text),
    "aliasing":     Kind(_aliasing,                                _aliasing_text),
    "shape":        Kind(lambda s: s.read(),                       lambda shape: shape.to_text()),
    "shapes":       Kind(_shapes,                                  _shapes_text),
    "literal":      Kind(_literal,                                 _literal_attr_text),
    "domain":       Kind(_domain,                                  _domain_text),
    "accuracy":     Kind(_accuracy,                                _accuracy_text),
}
# fmt: on


def kind_of(name: str) -> Kind:
    """Return the row of a kind; an ``enum:..`` gets its own."""
    kind = KINDS.get(name)
    if kind is None:
        kind = KINDS[name] = Kind(enum_reader(name), str)
    return kind


def read_frontend(s: ShapeReader) -> FrontendAttributes:
    """Read ``{key="value",key={nested}}``; the result is sorted by key."""
    c = s.cursor
    c.expect("{", "at the start of frontend_attributes")
    attributes: dict[str, str] = {}
    while not c.accept("}"):
        if attributes:
            c.expect(",", "between frontend attributes")
        at = c.skip()
        m = c.match(_KEY)
        if m is None:
            raise c.error(f"expected key=, found {c.next_token()}", at)
        key = m.group(1) if m.group(1) is not None else unescape(m.group(2))
        if key in attributes:
            raise c.error(f"frontend attribute {key!r} appears twice", at)
        attributes[key] = read_config(s)
    return tuple(sorted(attributes.items()))


_PLAIN_KEY = re.compile(r"[\w.\-/:$@]+", re.ASCII)


def frontend_text(attributes: FrontendAttributes) -> str:
    """Return the text of frontend attributes."""
    return "{" + ",".join(f"{_key_text(k)}={config_text(v)}" for k, v in attributes) + "}"


def _key_text(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else quote(key)


def read_config(s: ShapeReader) -> str:
    """Read a quoted string, or balanced braces verbatim."""
    c = s.cursor
    return c.braces("a dictionary") if c.at("{") else c.string("a value")


_SURROGATE = re.compile("[\ud800-\udfff]")


def config_text(text: str) -> str:
    """Return the text that `read_config` reads: braces stay verbatim, all else is quoted."""
    return text if balanced_end(text, 0) == len(text) > 0 and not _SURROGATE.search(text) else quote(text)


# fmt: off
_STRING, _INT = KINDS["string"], KINDS["int"]
_METADATA: dict[str, Kind] = {  # in the order they are printed
    "op_type": _STRING, "op_name": _STRING, "source_file": _STRING,
    "source_line": _INT, "source_end_line": _INT, "source_column": _INT, "source_end_column": _INT,
    "profile_type": KINDS["dims"], "deduplicated_name": _STRING, "scheduling_name": _STRING,
    "stack_frame_id": _INT, "size_of_generated_code_in_bytes": _INT, "size_of_memory_working_set_in_bytes": _INT,
    "preserve_layout": KINDS["bool"],
}
# fmt: on
METADATA_FIELDS = tuple(_METADATA)
_FIELD = Pattern(r",?[ \t\r\n]*+([a-z_]++)=")
_FAST_STRING = Pattern(r'"([^"\\]*+)"')


def read_metadata(s: ShapeReader) -> Metadata:
    """Read ``{op_name="..." source_line=3}``; the result has the canonical order of fields."""
    c = s.cursor
    c.expect("{", "at the start of metadata")
    fields: dict[str, object] = {}
    while not c.accept("}"):
        at = c.skip()
        m = c.match(_FIELD)
        if m is None or m.group(1) not in _METADATA:
            raise c.error(f"expected a field of metadata, found {c.next_token()}", at)
        if m.group(1) in fields:
            raise c.error(f"{m.group(1)} appears twice in metadata", at)
        fast = c.match(_FAST_STRING)
        kind = _METADATA[m.group(1)]
        fields[m.group(1)] = fast.group(1) if fast and kind is KINDS["string"] else _slow_field(c, s, kind, fast)
    return order_metadata(fields)


def _slow_field(c: Cursor, s: ShapeReader, kind: Kind, fast: re.Match[str] | None) -> object:
    if fast is not None:
        raise c.error("expected a value without quotes", fast.start(1) - 1)
    return kind.read(s)


def order_metadata(fields: dict[str, object]) -> Metadata:
    """Return metadata fields in their canonical order."""
    return tuple((f, fields[f]) for f in METADATA_FIELDS if f in fields)


def metadata_text(metadata: Metadata) -> str:
    """Return the text of metadata."""
    return "{" + " ".join(f"{f}={_METADATA[f].write(v)}" for f, v in metadata) + "}"


def _bools(s: ShapeReader) -> tuple[bool, ...]:
    if not s.cursor.at("{"):  # older text has one for all elements
        return (_bool(s),)
    return _braced_list(s.cursor, lambda: _bool(s), "a list of true and false")


BOOLS = Kind(_bools, lambda values: "{" + ",".join(map(_bool_text, values)) + "}")
VERBATIM = Kind(lambda s: s.cursor.braces("a list"), str)

# Attributes that any instruction takes, in print order; control-predecessors are read apart: they name instructions.
COMMON: dict[str, Kind] = {
    "parameter_replication": BOOLS,
    "sharding": Kind(lambda s: read_sharding(s.cursor), sharding_text),
    "frontend_attributes": Kind(read_frontend, frontend_text),
    "statistics": VERBATIM,
    "metadata": Kind(read_metadata, metadata_text),
    "origin": VERBATIM,
    "backend_config": Kind(read_config, config_text),
}
