"""Distribution of the C of a module over translation units for parallel compilers.

A unit of its own can hold a kernel, the entry that calls the kernels, or a function of a kernel that is kept from being
inlined and needs nothing of the kernel but types, macros, constants and other such functions; that function may be the
instance of a template (see `c.kernel_header`) behind its declaration. The compile time of a text is
estimated (`compile_cost`) from its length, its loops and the parts of the headers that it refers to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import field

from cyxla.records import dataclass
from cyxla.xla.cpu.c.kernel_header import instance_function, is_instance, split_instances
from cyxla.xla.cpu.c.prelude import expanded_size
from cyxla.xla.cpu.c.quote_comments import without_quotes
from cyxla.xla.cpu.c.target import for_library
from cyxla.xla.cpu.native.build import MAX_JOBS

MIN_UNIT_COST = 2_500  # characters from which starting another compiler pays off
LIBRARY_UNIT_COST = 60_000  # characters of a unit of a library that is built ahead of time

# Costs in characters; a least-squares fit over kernels of every kind.
FUNCTION_COST = 500
LOOP_COST = 650
OPEN_LOOP_COST = 3_500  # more, of one that is vectorised for a trip count known at run time: the rest is unrolled
EXPANSION_COST = 0.6  # per character expanded from the headers
INSTANCE_COST = 1_200  # of an instance of a template, most of which its parameters leave out

_SEPARABLE = re.compile(r"static (?:CYX_FUSED )?__attribute__\(\(noinline\)\) ([\w* ]*?)\b(k\d+_\w+)(\(.*\)) \{")
_PROTOTYPE = re.compile(r"(static __attribute__\(\(noinline\)\) [\w* ]*?\b(k\d+_\w+)\(.*\);)\n")
_TYPES = re.compile(r"typedef |#|static const k\d+_\w+ k\d+_(?:\w+_)?sizes = ")
_LOCAL = re.compile(r"k\d+_\w+")
_OPEN_LOOP = re.compile(r"for \(int \w+ = [^;]*; \w+ < (?!\d+;)")
_WORD = re.compile(r"\w")


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


def code_size(text: str) -> int:
    """Return the number of characters of a text; of instances of templates, estimated, and without their types."""
    pieces = split_instances(text)
    if len(pieces) == 1:
        return len(text)
    return sum(map(_size, pieces))


def _size(piece: str) -> int:
    if is_instance(piece):
        return INSTANCE_COST
    return sum(len(item) for item in _plain_items(piece) if not _TYPES.match(item))


def compile_cost(text: str) -> int:
    """Estimate the compile time of a text, in characters of plain C."""
    text = without_quotes(text)
    pieces = split_instances(text)
    if len(pieces) > 1 or is_instance(text):
        return sum(INSTANCE_COST if is_instance(piece) else compile_cost(piece) for piece in pieces)
    loops = LOOP_COST * text.count("for (") + OPEN_LOOP_COST * len(_OPEN_LOOP.findall(text))
    return len(text) + loops + int(EXPANSION_COST * expanded_size(text))


def unit_count(size: int) -> int:
    """Return the number of units for a text of `size` characters."""
    if for_library():  # the same on every machine
        return max(1, size // LIBRARY_UNIT_COST)
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
    types = "".join(item for item in items if _TYPES.match(item))
    separable = _separable(items, _locals(types))
    declarations = types + "".join(separable.values())
    parts = [Part("", "", (number, 0))]
    remaining = []
    for item in items:
        function = _function(item)
        if function not in separable:
            prototype = _PROTOTYPE.match(item)
            remaining.append(separable.get(prototype[2], item) if prototype else item)
            continue
        if _SEPARABLE.match(item):
            remaining.append(separable[function])
        parts.append(Part(item.removeprefix("static "), declarations, (number, len(parts))))
    parts[0].text = "".join(remaining).replace(f"static cyx_status {name}(", f"cyx_status {name}(")
    return parts


def _function(item: str) -> str:
    """Return the name of the function that an item defines, if it can stand in a unit of its own; else ""."""
    match = _SEPARABLE.match(item)
    if match is not None:
        return match[2]
    return instance_function(item)


def _locals(text: str) -> set[str]:
    r"""Return the names in a text that belong to a kernel; faster than a pattern that begins with ``\b``."""
    return {m[0] for m in _LOCAL.finditer(text) if not _WORD.match(text[m.start() - 1 : m.start()])}


def _separable(items: Sequence[str], available: set[str]) -> dict[str, str]:
    """Return declarations, by name, of the functions that refer to nothing but each other and known names."""
    declarations = {m[2]: m[1].removeprefix("static ") + "\n" for item in items if (m := _PROTOTYPE.match(item))}
    declarations |= {m[2]: f"{m[1]}{m[2]}{m[3]};\n" for item in items if (m := _SEPARABLE.match(item))}
    references = {name: _locals(item) - available for item in items if (name := _function(item)) in declarations}
    while incomplete := [n for n, names in references.items() if not names <= references.keys()]:
        for n in incomplete:
            del references[n]
    return {name: declarations[name] for name in references}


def distribute(entry: int, parts: Sequence[Part], count: int) -> list[list[Part]]:
    """Distribute parts evenly over at most `count` units, the first of which holds `entry` characters already."""
    units = [_Unit(cost=entry + FUNCTION_COST), *(_Unit() for _ in range(count - 1))]
    costs = [(compile_cost(part.text), part) for part in parts]
    for cost, part in sorted(costs, key=lambda c: -c[0]):  # sorting is stable: parts of equal cost stay in order
        unit = min(units, key=lambda u: u.cost)
        unit.parts.append(part)
        unit.cost += cost + FUNCTION_COST
    return [sorted(u.parts, key=lambda p: p.order) for k, u in enumerate(units) if u.parts or k == 0]


def _top_level_items(text: str) -> list[str]:
    """Split C into its top-level definitions: macros with their continuation lines, instances of templates in one."""
    return [
        item for piece in split_instances(text) for item in ([piece] if is_instance(piece) else _plain_items(piece))
    ]


def _plain_items(text: str) -> list[str]:
    """Split C without instances; directives in the body of a function belong to it, wherever their lines begin."""
    items: list[str] = []
    continues = is_in_body = False
    for line in text.splitlines(keepends=True):
        is_start = line[:1] not in (" ", "\t", "}", "\n") and not (continues or (is_in_body and line[:1] == "#"))
        if is_start or not items:
            items.append(line)
        else:
            items[-1] += line
        if line[:1] == "}":
            is_in_body = False
        elif not continues and line[:1] != "#":
            is_in_body |= line.endswith("{\n")
        continues = line.endswith("\\\n")
    return items
