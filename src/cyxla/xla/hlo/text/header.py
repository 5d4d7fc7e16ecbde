"""Parser and printer of the module line of HLO text and of the tables of stack frames."""

from __future__ import annotations

from typing import Any

from cyxla.errors import ShapeError
from cyxla.types import Shape
from cyxla.xla.hlo.attributes import BufferDonor, EntryLayout, InputOutputAlias
from cyxla.xla.hlo.module import HloModule, ModuleConfig
from cyxla.xla.hlo.text.attributes import BOOLS, KINDS, Kind, dims_text, frontend_text, read_frontend
from cyxla.xla.hlo.text.lexer import WS, Cursor, Pattern
from cyxla.xla.hlo.text.shapes import ShapeReader

_HEADER_WORD = Pattern(r"HloModule(?![\w.\-])")
_ATTRIBUTE = Pattern(rf",{WS}([A-Za-z_]\w*+)=")
STACK_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_TABLE = Pattern(rf"({'|'.join(STACK_TABLES)})(?=[ \t\r\n]+[^({{ \t\r\n])")
_TABLE_LINE = Pattern(r'([0-9]++)[ \t\r\n]++("(?:[^"\\]|\\.)*+"|\{[^{}]*+\})')


def _entry_layout(s: ShapeReader) -> EntryLayout:
    c = s.cursor
    c.expect("{", "at the start of entry_computation_layout")
    c.expect("(", "before the shapes of the parameters")
    parameters: list[Shape] = []
    while not c.accept(")"):
        if parameters:
            c.expect(",", "between shapes of parameters")
        parameters.append(s.read())
    c.expect("->", "after the shapes of the parameters")
    result = s.read()
    c.expect("}", "at the end of entry_computation_layout")
    return EntryLayout(tuple(parameters), result)


def entry_layout_text(layout: EntryLayout) -> str:
    """Return the text of an entry layout, such as ``{(f32[2]{0})->f32[2]{0}}``."""
    parts = [(f"/*index={i}*/" if i and i % 5 == 0 else "") + p.to_text() for i, p in enumerate(layout.parameters)]
    return f"{{({', '.join(parts)})->{layout.result.to_text()}}}"


def _index(s: ShapeReader) -> tuple[int, ...]:
    index: tuple[int, ...] = KINDS["dims"].read(s)
    return index


def _aliases(s: ShapeReader) -> tuple[InputOutputAlias, ...]:
    c = s.cursor
    c.expect("{", "at the start of input_output_alias")
    aliases: list[InputOutputAlias] = []
    while not c.accept("}"):
        if aliases:
            c.expect(",", "between aliases")
        output = _index(s)
        if not c.at(":"):
            raise c.error("expected ':' after the index of an output", _end_of_token(c))
        c.expect(":", "after the index of an output")
        number, index = _parameter(s)
        kind = "may-alias"
        if c.accept(","):
            at = c.skip()
            kind = c.name("may-alias or must-alias")
            if kind not in ("may-alias", "must-alias"):
                raise c.error(f"expected may-alias or must-alias, found {kind!r}", at)
        c.expect(")", "after what an output aliases")
        aliases.append(InputOutputAlias(output, number, index, kind))
    return tuple(aliases)


def _end_of_token(c: Cursor) -> int:
    """Return the position after the last token."""
    return len(c.text[: c.pos].rstrip())


def _parameter(s: ShapeReader) -> tuple[int, tuple[int, ...]]:
    c = s.cursor
    c.expect("(", "before the number of a parameter")
    number = c.integer("the number of a parameter", 0)
    c.expect(",", "after the number of a parameter")
    return number, _index(s)


def _aliases_text(aliases: tuple[InputOutputAlias, ...]) -> str:
    parts = [f"{dims_text(a.output_index)}: ({a.parameter}, {dims_text(a.parameter_index)}, {a.kind})" for a in aliases]
    return "{ " + ", ".join(parts) + " }"


def _donors(s: ShapeReader) -> tuple[BufferDonor, ...]:
    c = s.cursor
    c.expect("{", "at the start of buffer_donor")
    donors: list[BufferDonor] = []
    while not c.accept("}"):
        if donors:
            c.expect(",", "between buffer donors")
        donors.append(BufferDonor(*_parameter(s)))
        c.expect(")", "after a buffer donor")
    return tuple(donors)


def _donors_text(donors: tuple[BufferDonor, ...]) -> str:
    return "{ " + ", ".join(f"({d.parameter}, {dims_text(d.parameter_index)})" for d in donors) + " }"


def _count(s: ShapeReader) -> int:
    return s.cursor.integer("a count", 1)


# fmt: off
# name in text -> (field of ModuleConfig, parser and printer); in print order
_ATTRIBUTES: dict[str, tuple[str, Kind]] = {
    "is_scheduled":             ("is_scheduled",             KINDS["bool"]),
    "input_output_alias":       ("input_output_alias",       Kind(_aliases, _aliases_text)),
    "buffer_donor":             ("buffer_donor",             Kind(_donors, _donors_text)),
    "alias_passthrough_params": ("alias_passthrough_params", KINDS["bool"]),
    "entry_computation_layout": ("entry_layout",             Kind(_entry_layout, entry_layout_text)),
    "allow_spmd_sharding_propagation_to_parameters": ("allow_spmd_sharding_propagation_to_parameters", BOOLS),
    "allow_spmd_sharding_propagation_to_output":     ("allow_spmd_sharding_propagation_to_output", BOOLS),
    "replica_count":            ("replica_count",            Kind(_count, str)),
    "num_partitions":           ("num_partitions",           Kind(_count, str)),
    "frontend_attributes":      ("frontend_attributes",      Kind(read_frontend, frontend_text)),
    "origin_recovery_table":    ("origin_recovery_table",    Kind(lambda s: s.cursor.braces("a table"), str)),
    "debug_attributes":         ("debug_attributes",         Kind(lambda s: s.cursor.braces("a table"), str)),
}
# fmt: on


def read_header(s: ShapeReader, module: HloModule) -> bool:
    """Read ``HloModule name, attr=..`` into a module; return False if the text has no such line."""
    c = s.cursor
    if not _HEADER_WORD.match(c.text, c.pos):
        return False
    c.match(_HEADER_WORD)
    module.name = c.name("the name of the module")
    c.accept(":")  # in older text
    names: set[str] = set()
    while (m := c.match(_ATTRIBUTE)) is not None:
        name = m.group(1)
        if name not in _ATTRIBUTES or name in names:
            fault = "appears twice" if name in names else "is not an attribute of a module"
            raise c.error(f"{name} {fault}", m.start(1), hint=f"it takes {', '.join(_ATTRIBUTES)}")
        names.add(name)
        field, kind = _ATTRIBUTES[name]
        setattr(module.config, field, kind.read(s))
    if c.accept(","):
        raise c.error(f"expected an attribute of the module, found {c.next_token()}")
    return True


def check_aliases(c: Cursor, module: HloModule) -> None:
    """Raise if an alias or donor names an index that does not exist."""
    result, parameters = module.entry.root.shape, [p.shape for p in module.parameters]
    positions = [(a.parameter, a.parameter_index) for a in module.config.input_output_alias]
    positions += [(d.parameter, d.parameter_index) for d in module.config.buffer_donor]
    try:
        for alias in module.config.input_output_alias:
            result.subshape(alias.output_index)
        for number, index in positions:
            if number >= len(parameters):
                raise ShapeError(f"there is no parameter {number}")
            parameters[number].subshape(index)
    except ShapeError as e:
        raise c.error(f"input_output_alias or buffer_donor: {e.message}") from None


def header_text(name: str, config: ModuleConfig, layout: EntryLayout) -> str:
    """Return the module line."""
    usual = ModuleConfig()
    parts = [f"HloModule {name}"]
    for attr, (field, kind) in _ATTRIBUTES.items():
        value: Any = layout if field == "entry_layout" else getattr(config, field)
        if value != getattr(usual, field):
            parts.append(f"{attr}={kind.write(value)}")
    return ", ".join(parts)


def read_stack_frames(c: Cursor) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Read the tables between the module line and the computations."""
    tables = []
    while (m := c.match(_TABLE)) is not None:
        lines = []
        while (line := c.match(_TABLE_LINE)) is not None:
            lines.append(f"{line.group(1)} {line.group(2)}")
        tables.append((m.group(1), tuple(lines)))
    return tuple(tables)


def stack_frames_text(tables: tuple[tuple[str, tuple[str, ...]], ...]) -> str:
    """Return the text of the stack-frame tables."""
    return "".join(f"{name}\n" + "".join(f"{line}\n" for line in lines) + "\n" for name, lines in tables)
