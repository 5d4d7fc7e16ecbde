"""Texts made of traced values: they can be printed in each run, and be messages of exceptions, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, NoReturn

PLACEHOLDER: Final = ": no value while tracing; cyxla.print prints it in every run"


class Field(NamedTuple):
    """A traced value in a text.

    Attributes
    ----------
    value : object
        Value, or a container of some.
    conversion : str
        ``"!r"``, ``"!s"``, ``"!a"``, or an empty text.
    spec : str
        Format specification.
    refuse : callable
        Function that raises the error of an operation which needs the text.
    """

    value: Any
    conversion: str
    spec: str
    refuse: Callable[..., NoReturn]


class TracedText(str):
    """Text with traced values.

    Parameters
    ----------
    pieces : sequence of (str or Field)
        Pieces of the text.
    """

    pieces: tuple[str | Field, ...]

    def __new__(cls, pieces: Sequence[str | Field]) -> TracedText:  # noqa: D102
        made = super().__new__(cls, "".join([p if isinstance(p, str) else _placeholder(p) for p in pieces]))
        made.pieces = tuple(pieces)
        return made

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        """Raise the error of an operation that needs the text."""
        next(p for p in self.pieces if isinstance(p, Field)).refuse()

    def __add__(self, other: Any) -> Any:
        return TracedText([*self.pieces, *pieces_of(other)]) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return TracedText([*pieces_of(other), *self.pieces]) if isinstance(other, str) else NotImplemented

    def __str__(self) -> str:
        return self

    def __repr__(self) -> str:
        return repr(str.__str__(self))

    def __format__(self, spec: str) -> str:
        return self.refuse() if spec else self


def _placeholder(field: Field) -> str:
    return f"<{field.value!r}{PLACEHOLDER}>"


def pieces_of(text: str) -> tuple[str | Field, ...]:
    """Return the pieces of a text."""
    return text.pieces if isinstance(text, TracedText) else (text,)


_KEPT = frozenset(
    ("__new__", "__init__", "__class__", "__getattribute__", "__setattr__", "__delattr__", "__dir__", "__doc__")
) | frozenset(vars(TracedText))
for _name in dir(str):
    if _name not in _KEPT and callable(getattr(str, _name)) and _name not in ("__init_subclass__", "__subclasshook__"):
        setattr(TracedText, _name, TracedText.refuse)
