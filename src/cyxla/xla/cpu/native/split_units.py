"""Splits the C of a module into units for several compilers.

What can stand in a unit of its own is a kernel, the entry that calls the kernels, and a function of a kernel that is
kept from being inlined and needs nothing of the kernel but types, macros and others of its kind. The time that a text
takes to compile is guessed (`effort`) from its length, its loops and what it names of the headers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cyxla.xla.cpu.c.prelude import expanded_size
from cyxla.xla.cpu.native.build import MAX_JOBS

ENOUGH = 2_500  # characters that are worth another compiler, which takes a while to start

# In characters; a least-squares fit over kernels of every kind.
FUNCTION = 500  # one more function
LOOP = 650  # one more loop
EXPANSION = 0.6  # a character of what is expanded from the headers

_APART = re.compile(r"static (?:CYX_FUSED )?__attribute__\(\(noinline\)\) ([\w* ]*?)\b(k\d+_\w+)(\(.*\)) \{")
_SHARED = ("typedef ", "#")
_LOCAL = re.compile(r"\bk\d+_\w+")


@dataclass
class Part:
    """A piece of C for one unit.

    Attributes
    ----------
    text : str
        What it defines, seen from all units.
    types : str
        What it may need: types, macros and declarations.
    order : tuple of int
        Where it stands among the parts: kernel, function.
    """

    text: str
    types: str
    order: tuple[int, int]


@dataclass
class _Unit:
    parts: list[Part] = field(default_factory=list)
    size: int = 0


def compilers() -> int:
    """How many compilers this machine runs at once."""
    return min(len(os.sched_getaffinity(0)), MAX_JOBS)


def effort(text: str) -> int:
    """How long a text takes to compile, in characters."""
    return len(text) + LOOP * text.count("for (") + int(EXPANSION * expanded_size(text))


def worthwhile(size: int) -> int:
    """Among how many compilers to share so many characters."""
    return max(1, min(compilers(), size // ENOUGH))


def parts(number: int, name: str, text: str) -> list[Part]:
    """A kernel as parts, the first of which holds all that cannot stand apart.

    Parameters
    ----------
    number : int
        Of the kernel.
    name : str
        Of the kernel, as in the text.
    text : str
        Its definition with helpers.
    """
    items = _items(text)
    types = "".join(item for item in items if item.startswith(_SHARED))
    apart = _apart(items, {*_LOCAL.findall(types)})
    declared = types + "".join(apart.values())
    found = [Part("", "", (number, 0))]
    rest = []
    for item in items:
        match = _APART.match(item)
        if match is None or match[2] not in apart:
            rest.append(item)
            continue
        rest.append(apart[match[2]])
        found.append(Part(item.removeprefix("static "), declared, (number, len(found))))
    found[0].text = "".join(rest).replace(f"static cyx_status {name}(", f"cyx_status {name}(")
    return found


def _apart(items: Sequence[str], known: set[str]) -> dict[str, str]:
    """Declarations, by name, of the functions that need nothing but each other and what is known."""
    heads = [(m, item) for item in items if (m := _APART.match(item))]
    needs = {m[2]: {*_LOCAL.findall(item)} - known for m, item in heads}
    while lacking := [n for n, needed in needs.items() if not needed <= needs.keys()]:
        for n in lacking:
            del needs[n]
    return {m[2]: f"{m[1]}{m[2]}{m[3]};\n" for m, _ in heads if m[2] in needs}


def deal(entry: int, pieces: Sequence[Part], count: int) -> list[list[Part]]:
    """Deal parts out to so many units, the first of which has `entry` characters already; unused units are left out."""
    units = [_Unit(size=entry + FUNCTION), *(_Unit() for _ in range(count - 1))]
    efforts = [(effort(part.text), part) for part in pieces]
    for size, part in sorted(efforts, key=lambda e: -e[0]):  # stable: what is equal stays in order
        unit = min(units, key=lambda u: u.size)
        unit.parts.append(part)
        unit.size += size + FUNCTION
    return [sorted(u.parts, key=lambda p: p.order) for k, u in enumerate(units) if u.parts or k == 0]


def _items(text: str) -> list[str]:
    """Cut C at the definitions that begin at the start of a line; macros keep the lines that continue them."""
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
