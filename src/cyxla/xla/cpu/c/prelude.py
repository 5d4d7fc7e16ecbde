"""Prelude of a C text: the parts of the package's headers that it needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from cyxla.include_dir import get_include

#: Headers under ``include/cyxla``, each after those it depends on.
HEADERS = ("compiler.h", "scalar.h", "math.h", "math_inverse.h", "complex.h", "loops.h", "prebuilt.h")

_NAME = re.compile(r"\b(?:cyx|CYX)_\w+")
_NAME_IN_WORD = re.compile(r"(?:cyx|CYX)_\w+")  # also matches after a prefix; several times as fast
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_INTEGERS = re.compile(r"^#ifndef INT64_MAX.*\n((?:typedef .*\n)+)#endif\n", re.MULTILINE)
_GUARD = re.compile(r"^#\s*(?:ifndef|define)\s+CYXLA_\w+_H\s*$", re.MULTILINE)


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
    blocks, owner = _index(tuple(headers))
    needed: set[int] = set()
    names = _names(text)
    while names:
        new = {owner[n] for n in names if n in owner} - needed
        needed |= new
        names = set().union(*(blocks[b][1] for b in new))
    return abi() + "".join(blocks[b][0] + "\n" for b in sorted(needed))


def expanded_size(text: str) -> int:
    """Return the number of characters that the header functions and macros of a text expand to, counting every use."""
    lengths = _lengths()
    return sum(lengths.get(name, 0) for name in _NAME.findall(text))


def definition(name: str) -> str:
    """Return the block of the headers that defines a name; empty if none does."""
    blocks, owner = _index(HEADERS)
    return blocks[owner[name]][0] if name in owner else ""


@cache
def _lengths() -> dict[str, int]:
    """Return the expanded size of each name: its block with all that this names, if it holds code."""
    blocks, owner = _index(HEADERS)
    lengths: list[int] = []
    for number, (text, names) in enumerate(blocks):
        earlier = {owner[n] for n in names if owner.get(n, number) < number}
        code = "static inline" in text or "#define" in text
        lengths.append(len(text) + sum(lengths[b] for b in earlier) if code else 0)
    directives = _names(_read("compiler.h"))  # pragmas and attributes, which add no code
    return {name: 0 if name in directives else lengths[block] for name, block in owner.items()}


@cache
def abi() -> str:
    """Return the text of ``abi.h``, the interface between generated code and its caller.

    Its condition for files that include ``<stdint.h>``, as generated code does not, is left out.
    """
    return _INTEGERS.sub(r"\1", _read("abi.h")) + "\n"


def _read(header: str) -> str:
    return Path(get_include(), "cyxla", header).read_text(encoding="utf-8")


def _names(text: str) -> set[str]:
    return set(_NAME_IN_WORD.findall(_COMMENT.sub("", text) if "/*" in text else text))


@cache
def _index(headers: tuple[str, ...]) -> tuple[list[tuple[str, set[str]]], dict[str, int]]:
    """Return the blocks as (text, names in it), and for each name the index of the block that defines it."""
    blocks: list[tuple[str, set[str]]] = []
    owner = dict.fromkeys(_names(abi()), -1)  # names of abi.h need no block
    for header in headers:
        for part in re.split(r"\n[ \t]*\n", _GUARD.sub("", _read(header))):
            names = _names(part)
            for name in names:
                owner.setdefault(name, len(blocks))
            blocks.append((part.strip("\n") + "\n", names))
    return blocks, {n: b for n, b in owner.items() if b >= 0}
