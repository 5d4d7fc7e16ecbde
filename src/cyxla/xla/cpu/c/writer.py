"""Writer of C: lines, blocks, and names numbered from 1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class CWriter:
    """Collector of lines of C and source of unique names.

    Names depend only on the order of the calls, so equal work gives equal text.
    """

    __slots__ = ("_counts", "_indent", "_lines")

    def __init__(self, indent: int = 0) -> None:
        self._lines: list[str] = []
        self._indent = "  " * indent
        self._counts: dict[str, int] = {}

    def name(self, prefix: str = "v") -> str:
        """Return a new name: v1, v2 .."""
        number = self._counts.get(prefix, 0) + 1
        self._counts[prefix] = number
        return f"{prefix}{number}"

    def line(self, text: str, note: str = "") -> None:
        """Write one line, indented; `note` becomes a comment."""
        self._lines.append(f"{self._indent}{text}  /* {note} */" if note else self._indent + text)

    def child(self) -> CWriter:
        """Return an empty writer that shares the names of this one; its text is added by `lines`."""
        other = CWriter()
        other._counts = self._counts
        return other

    @property
    def written(self) -> list[str]:
        """Lines written so far."""
        return self._lines

    def lines(self, texts: Iterator[str] | list[str]) -> None:
        """Write several lines."""
        self._lines += [self._indent + t for t in texts]

    def local(self, c_type: str, expression: str, note: str = "") -> str:
        """Define a constant local; return its name."""
        name = self.name()
        self.line(f"const {c_type} {name} = {expression};", note)
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write a block ``head { .. }`` around a body."""
        self.line(f"{head} {{" if head else "{")
        self.open()
        try:
            yield
        finally:
            self.close()
            self.line("}")

    def open(self) -> None:
        """Indent the lines that follow."""
        self._indent += "  "

    def close(self) -> None:
        """Undo one `open`."""
        self._indent = self._indent[:-2]

    def text(self) -> str:
        """Return everything written, one line break after each line."""
        return "\n".join(self._lines) + ("\n" if self._lines else "")


def pointer_inside(pointer: str, offset: int) -> str:
    """Return the C of a pointer that is moved by an offset in bytes."""
    return f"(char *)({pointer}) + {offset}" if offset else pointer
