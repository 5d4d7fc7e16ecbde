"""``cyxla opcodes``: the opcodes of HLO."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterable

from cyxla.types import ElementType
from cyxla.xla.hlo import OPCODES, Opcode, lookup

_ACCURACY = (
    "The column ulp bounds the error of native results in f32 and f64, in units in the last place; processors without",
    "fused multiply-add may add half a unit. Other element-wise opcodes round once. Narrower floats are computed in",
    "f32 and rounded; errors of complex functions are small relative to the absolute value. `result_accuracy` and",
    "`operand_precision` change nothing: there is no option for lower precision.",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("name", nargs="?", help="show this opcode")
    parser.add_argument("--markdown", action="store_true", help="print the whole table as docs/opcodes.md")


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    if args.markdown:
        print(markdown(), end="")
    elif args.name:
        print(describe(lookup(args.name)))
    else:
        for row in OPCODES.values():
            attrs = ", ".join(a.name for a in row.attrs)
            print(f"{row.name:26s} {arity(row):>5s} operands  {types(row.accepts):24s} {attrs}".rstrip())
    return 0


def describe(row: Opcode) -> str:
    """Return operands, types, attributes and constraints of an opcode."""
    attrs = [f"  {a.name} ({a.kind}{'' if a.required else f', default {a.default!r}'})" for a in row.attrs]
    calls = [f"  {name} (computation)" for name in row.calls]
    rule = inspect.getdoc(row.rule) or "" if row.rule else ""
    head = f"{row.name}: {arity(row)} operands, {types(row.accepts)}"
    return "\n".join(
        [head, *(["attributes:"] if attrs or calls else []), *attrs, *calls, *(["rule:", rule] if rule else [])]
    )


def markdown() -> str:
    """Return the table of opcodes as a page."""
    lines = [
        "# Opcodes", "", "Written by `cyxla opcodes --markdown`.", "", *_ACCURACY, "",
        "| opcode | operands | element types | attributes | calls | ulp | constraints |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name in sorted(OPCODES):
        row = OPCODES[name]
        rule = " ".join((inspect.getdoc(row.rule) or "").split()) if row.rule else ""
        attrs = ", ".join(a.name if a.required else f"[{a.name}]" for a in row.attrs)
        ulp = str(row.ulp or "")
        cells = (name, arity(row), types(row.accepts), attrs, ", ".join(row.calls), ulp, rule.replace("|", "/"))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def arity(row: Opcode) -> str:
    """Return the number of operands as text: ``2``, ``1+``, ``3-4``."""
    low, high = row.arity
    return f"{low}+" if high is None else str(low) if low == high else f"{low}-{high}"


def types(accepted: Iterable[ElementType]) -> str:
    """Return element types as text, by group: ``pred, s*, u*, f*, c*``."""
    accepted_types = set(accepted)
    groups = {
        "pred": {ElementType.PRED},
        "s*": {e for e in ElementType if e.is_signed},
        "u*": {e for e in ElementType if e.is_unsigned},
        "f*": {e for e in ElementType if e.is_float},
        "c*": {e for e in ElementType if e.is_complex},
    }
    group_names = [name for name, members in groups.items() if members <= accepted_types]
    rest = accepted_types - set().union(*(groups[n] for n in group_names))
    return ", ".join([*group_names, *sorted(map(str, rest))])
