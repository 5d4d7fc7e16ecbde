"""Prelude of a C text: the parts of the package's headers that it needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

from cyxla.include_dir import get_include

#: Headers under ``include/cyxla``, each after those it depends on.
HEADERS = ("compiler.h", "scalar.h", "math.h", "math_inverse.h", "complex.h", "loops.h", "prebuilt.h", "launches.h")

_NAME = re.compile(r"\b(?:cyx|CYX)_\w+")
_NAME_IN_WORD = re.compile(r"(?:cyx|CYX)_\w+")  # also matches after a prefix; several times as fast
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_INTEGERS = re.compile(r"^#ifndef INT64_MAX.*\n((?:typedef .*\n)+)#endif\n", re.MULTILINE)
_GUARD = re.compile(r"^#\s*(?:ifndef|define)\s+CYXLA_\w+_H\s*$", re.MULTILINE)

Place: TypeAlias = tuple[int, int]  # of a block: the header's index, and the block's in it


class _Block(NamedTuple):
    text: str
    names: set[str]


def prelude(text: str, headers: Sequence[str] = HEADERS) -> str:
    """Return ``abi.h`` and the header blocks that a text names, directly or through others, in the headers' order.

    Parameters
    ----------
    text : str
        C without includes.
    headers : sequence of str
        Names of files under ``include/cyxla``. Each file is a sequence of blocks separated by blank lines; a block
        defines the names with the project's prefix that no earlier block has.
    """
    index = _index(tuple(headers))
    needed: set[Place] = set()
    names = _names(text)
    while names:
        new = {place for n in names if (place := index.place(n)) is not None} - needed
        needed |= new
        names = set().union(*(index.block(place).names for place in new))
    return abi() + "".join(index.block(place).text + "\n" for place in sorted(needed))


def expanded_size(text: str) -> int:
    """Return the number of characters that the header functions and macros of a text expand to, counting every use."""
    return sum(map(_expanded_size, _NAME.findall(text)))


def definition(name: str) -> str:
    """Return the block of the headers that defines a name; empty if none does."""
    index = _index(HEADERS)
    place = index.place(name)
    return "" if place is None else index.block(place).text


@cache
def _expanded_size(name: str) -> int:
    place = None if name in _directives() else _index(HEADERS).place(name)
    return 0 if place is None else _block_size(place)


@cache
def _block_size(place: Place) -> int:
    """Return the expanded size of a block: its text with all that it names, if it holds code."""
    index = _index(HEADERS)
    text, names = index.block(place)
    if "static inline" not in text and "#define" not in text:
        return 0
    earlier = {found for n in names if (found := index.place(n)) is not None and found < place}
    return len(text) + sum(map(_block_size, earlier))


@cache
def _directives() -> set[str]:
    """Return the names of pragmas and attributes, which add no code."""
    return _names(_read("compiler.h"))


@cache
def abi() -> str:
    """Return the text of ``abi.h``, the interface between generated code and its caller.

    Its condition for files that include ``<stdint.h>``, as generated code does not, is left out.
    """
    return _INTEGERS.sub(r"\1", _read("abi.h")) + "\n"


@cache
def _read(header: str) -> str:
    return Path(get_include(), "cyxla", header).read_text(encoding="utf-8")


def _names(text: str) -> set[str]:
    return set(_NAME_IN_WORD.findall(_COMMENT.sub("", text) if "/*" in text else text))


class _Header:
    """A header, cut into blocks once a name in it is looked for: most programs need few headers."""

    def __init__(self, name: str) -> None:
        self.text = _read(name)

    @cached_property
    def blocks(self) -> list[_Block]:
        """Blocks in the order of the file."""
        parts = re.split(r"\n[ \t]*\n", _GUARD.sub("", self.text))
        return [_Block(part.strip("\n") + "\n", _names(part)) for part in parts]

    @cached_property
    def owners(self) -> dict[str, int]:
        """Index of the first block that has a name, by name."""
        owners: dict[str, int] = {}
        for number, block in enumerate(self.blocks):
            for name in block.names:
                owners.setdefault(name, number)
        return owners


class _Index:
    """Blocks of headers by the names that they define.

    Parameters
    ----------
    headers : sequence of str
        Names of the headers.
    """

    def __init__(self, headers: Sequence[str]) -> None:
        self.headers = [_Header(name) for name in headers]
        self._places: dict[str, Place | None] = dict.fromkeys(_names(abi()))  # which need no block

    def place(self, name: str) -> Place | None:
        """Return the place of the block that defines a name; None if none does."""
        if name not in self._places:
            found = [(k, h.owners[name]) for k, h in enumerate(self.headers) if name in h.text and name in h.owners]
            self._places[name] = found[0] if found else None
        return self._places[name]

    def block(self, place: Place) -> _Block:
        """Return the block at a place."""
        return self.headers[place[0]].blocks[place[1]]


_index = cache(_Index)
