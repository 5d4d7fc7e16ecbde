"""Pieces of C text: strings, arrays of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

_PLAIN = frozenset(b" !#$%&'()*+,-./0123456789:;<=>@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~")


def string(text: str) -> str:
    """Return a string literal; other characters than letters and the like are escaped, so that it holds any text."""
    characters = [chr(b) if b in _PLAIN else f"\\{b:03o}" for b in text.encode()]
    return '"' + "".join(characters) + '"'


def numbers(values: Iterable[int]) -> str:
    """Return an initialiser of integers, never empty."""
    return "{" + ", ".join(map(str, values)) + "}" if (values := list(values)) else "{0}"


def words(data: bytes) -> str:
    """Return the bytes of little-endian 64-bit integers, in lines of an initialiser."""
    padded = np.frombuffer(data + bytes(-len(data) % 8), "<u8").tolist()
    rows = [padded[k : k + 8] for k in range(0, len(padded), 8)]
    return "\n".join("  " + " ".join(f"{w:#x}," for w in row) for row in rows)


def comment(text: str) -> str:
    """Return a text as lines of a block comment, without anything that could end it."""
    safe = "".join(c if c.isprintable() and c.isascii() else "." for c in text)
    for wrong, right in (("\\", "."), ("?", "."), ("*/", "* /"), ("/*", "/ *")):  # continued lines, trigraphs
        safe = safe.replace(wrong, right)
    return safe


def table(rows: Sequence[str], kind: str, name: str) -> str:
    """Return the definition of a static array of structs."""
    body = "\n".join(f"  {row}," for row in rows) or "  {0},"
    return f"static const {kind} {name}[] = {{\n{body}\n}};\n"


def dims(values: Sequence[Any]) -> str:
    """Return an array of sizes as a compound literal."""
    return f"(const int64_t[]){numbers(map(int, values))}"
