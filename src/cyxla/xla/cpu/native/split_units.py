"""Distribution of the C of a module over translation units for parallel compilers.

A unit of its own can hold a kernel, the entry that calls the kernels, or a function of a kernel that is kept from being
inlined and needs nothing of the kernel but types, macros and other such functions. The compile time of a text is
estimated (`compile_cost`) from its length, its loops and the parts of the headers that it refers to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cyxla.xla.cpu.c.prelude import expanded_size
from cyxla.xla.cpu.c.quotes import without_quotes
from cyxla.xla.cpu.native.build import MAX_JOBS

MIN_UNIT_COST = 2_500  # characters that are worth another compiler, which takes a while to start

# Costs in characters; a least-squares fit over kernels of every kind.
FUNCTION_COST = 500
LOOP_COST = 650
EXPANSION_COST = 0.6  # per character that is expanded from the headers

_SEPARABLE = re.compile(r"static (?:CYX_FUSED )?__attribute__\(\(noinline\)\) ([\w* ]*?)\b(k\d+_\w+)(\(.*\)) \{")
_SHARED = ("typedef ", "#")
_LOCAL = re.compile(r"\bk\d+_\w+")


@dataclass
class Part:
    """A piece of C for one unit.

    Attributes
    ----------
    text : str
        Definitions, visible to all units.
    types : str
        Types, macros and declarations that the definitions may need.
    order : tuple of int
        Position among the parts: index of the kernel, index of the function in it.
    """

    text: str
    types: str
    order: tuple[int, int]


@dataclass
class _Unit:
    parts: list[Part] = field(default_factory=list)
    cost: int = 0


def max_compilers() -> int:
    """Return the number of compilers that this machine runs at once."""
    return min(len(os.sched_getaffinity(0)), MAX_JOBS)


def compile_cost(text: str) -> int:
    """Estimate the compile time of a text, in characters of plain C."""
    text = without_quotes(text)
    return len(text) + LOOP_COST * text.count("for (") + int(EXPANSION_COST * expanded_size(text))


def unit_count(size: int) -> int:
    """Return the number of units for a text of `size` characters."""
    return max(1, min(max_compilers(), size // MIN_UNIT_COST))


def split_kernel(number: int, name: str, text: str) -> list[Part]:
    """Split a kernel into parts, the first of which holds everything that is not separable.

    Parameters
    ----------
    number : int
        Index of the kernel.
    name : str
        Name of the kernel in the text.
    text : str
        Definition of the kernel with its helpers.
    """
    items = _top_level_items(text)
    types = "".join(item for item in items if item.startswith(_SHARED))
    separable = _separable(items, {*_LOCAL.findall(types)})
    declared = types + "".join(separable.values())
    found = [Part("", "", (number, 0))]
    rest = []
    for item in items:
        match = _SEPARABLE.match(item)
        if match is None or match[2] not in separable:
            rest.append(item)
            continue
        rest.append(separable[match[2]])
        found.append(Part(item.removeprefix("static "), declared, (number, len(found))))
    found[0].text = "".join(rest).replace(f"static cyx_status {name}(", f"cyx_status {name}(")
    return found


def _separable(items: Sequence[str], known: set[str]) -> dict[str, str]:
    """Return declarations, by name, of the functions that refer to nothing but each other and known names."""
    heads = [(m, item) for item in items if (m := _SEPARABLE.match(item))]
    needs = {m[2]: {*_LOCAL.findall(item)} - known for m, item in heads}
    while lacking := [n for n, needed in needs.items() if not needed <= needs.keys()]:
        for n in lacking:
            del needs[n]
    return {m[2]: f"{m[1]}{m[2]}{m[3]};\n" for m, _ in heads if m[2] in needs}


def distribute(entry: int, parts: Sequence[Part], count: int) -> list[list[Part]]:
    """Distribute parts evenly over at most `count` units, the first of which holds `entry` characters already."""
    units = [_Unit(cost=entry + FUNCTION_COST), *(_Unit() for _ in range(count - 1))]
    costs = [(compile_cost(part.text), part) for part in parts]
    for cost, part in sorted(costs, key=lambda c: -c[0]):  # stable: parts of equal cost stay in order
        unit = min(units, key=lambda u: u.cost)
        unit.parts.append(part)
        unit.cost += cost + FUNCTION_COST
    return [sorted(u.parts, key=lambda p: p.order) for k, u in enumerate(units) if u.parts or k == 0]


def _top_level_items(text: str) -> list[str]:
    """Split C into its top-level definitions, with the continuation lines of macros."""
    items: list[str] = []
    open_ = False
    for line in text.splitlines(keepends=True):
        starts = line[:1] not in (" ", "\t", "}", "\n") and not open_
        if starts or not items:
            items.append(line)
        else:
            items[-1] += line
        open_ = line.rstrip("\n").endswith("\\")
    return items
