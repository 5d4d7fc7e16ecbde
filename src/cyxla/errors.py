"""Every error cyxla raises on purpose.

One class for each of TensorFlow's canonical codes, each also the Python exception a reader would expect::

    OpError
    ├─ CancelledError            1
    ├─ UnknownError              2
    ├─ InvalidArgumentError      3   ValueError
    │  ├─ ShapeError                 shapes that do not fit
    │  ├─ DTypeError                 TypeError: element types that do not fit
    │  ├─ TraceError                 TypeError: a Python function that cannot be traced
    │  └─ HloParseError              text that is not HLO: line, column
    ├─ DeadlineExceededError     4   TimeoutError
    ├─ NotFoundError             5   LookupError
    ├─ AlreadyExistsError        6
    ├─ PermissionDeniedError     7   PermissionError
    ├─ ResourceExhaustedError    8   MemoryError
    ├─ FailedPreconditionError   9   RuntimeError
    ├─ AbortedError             10
    ├─ OutOfRangeError          11   IndexError
    ├─ UnimplementedError       12   NotImplementedError
    ├─ InternalError            13   RuntimeError
    ├─ UnavailableError         14
    │  └─ NoCompilerError            no C compiler
    ├─ DataLossError            15
    └─ UnauthenticatedError     16
"""

from __future__ import annotations

from typing import ClassVar

_MOST_LINES, _MOST_CHARACTERS = 15, 900
_PLACE, _PLACE_LINES = 200, 3  # of a long place, or of long advice


class OpError(Exception):
    """Base of all errors: what went wrong, where, and how to mend it.

    As text, at most 15 lines and 900 characters: of what is longer the middle is left out, which the attributes keep.

    Parameters
    ----------
    message : str
        What went wrong.
    rule : str, optional
        The numbered constraint that was broken, such as ``"concatenate C4"``.
    where : str, optional
        The node, instruction or file position it went wrong at.
    hint : str, optional
        How to mend it.
    node, op : str, optional
        Name and type of the graph node that failed.
    """

    code: ClassVar[str] = "UNKNOWN"
    number: ClassVar[int] = 2

    def __init__(
        self,
        message: str,
        *,
        rule: str = "",
        where: str = "",
        hint: str = "",
        node: str | None = None,
        op: str | None = None,
    ) -> None:
        self.message = f"{message}  [{rule}]" if rule else message
        self.rule, self.where, self.hint, self.node, self.op = rule, where, hint, node, op
        super().__init__(self.message)

    def __str__(self) -> str:
        text = _together(self.message, self.where, self.hint)
        if len(text) <= _MOST_CHARACTERS and text.count("\n") < _MOST_LINES:
            return text
        where, hint = (_without_middle(part, _PLACE_LINES, _PLACE) for part in (self.where, self.hint))
        taken = _together("", where, hint)
        lines, characters = _MOST_LINES - taken.count("\n"), _MOST_CHARACTERS - len(taken)
        return _together(_without_middle(self.message, lines, characters), where, hint)


Error = OpError


def _together(message: str, where: str, hint: str) -> str:
    """An error's text."""
    lines = [message]
    if where:
        lines.append(f"  at:   {where}")
    if hint:
        lines.append(f"  mend: {hint}")
    return "\n".join(lines)


def _without_middle(text: str, lines: int, characters: int) -> str:
    """A text of at most so many lines and characters; its end may say why, so a third of what stays is the end."""
    rows = text.split("\n")
    if len(rows) > lines:
        last = max(1, (lines - 1) // 3)
        text = "\n".join([*rows[: lines - 1 - last], "…", *rows[len(rows) - last :]])
    if len(text) > characters:
        last = characters // 3
        text = f"{text[: characters - last - 3]} … {text[-last:]}"
    return text


class CancelledError(OpError):
    """The caller or a signal stopped the work."""

    code, number = "CANCELLED", 1


class UnknownError(OpError):
    """An error that came without a code."""


class InvalidArgumentError(OpError, ValueError):
    """An argument, attribute or program that breaks a rule."""

    code, number = "INVALID_ARGUMENT", 3


class ShapeError(InvalidArgumentError):
    """Shapes that do not fit each other or the operation."""


class DTypeError(InvalidArgumentError, TypeError):
    """Element types that do not fit each other or the operation."""


class TraceError(InvalidArgumentError, TypeError):
    """A Python function that cannot be traced into a computation."""


class HloParseError(InvalidArgumentError):
    """Text that is not HLO.

    Parameters
    ----------
    message : str
        What was expected and what stands there.
    line, column : int
        Place of the error, both counted from 1.
    """

    def __init__(self, message: str, line: int = 0, column: int = 0, *, hint: str = "") -> None:
        self.line, self.column = line, column
        super().__init__(f"{line}:{column}: {message}" if line else message, hint=hint)


class RecompileWarning(UserWarning):
    """A function is compiled again and again, since an argument keeps changing what it is."""


class UnknownAttributeWarning(UserWarning):
    """A graph holds attributes that no declaration knows, and is read without them."""


class ElidedConstantWarning(UserWarning):
    """A program was printed without the values of its large constants; zeros stand in for them."""


class DeadlineExceededError(OpError, TimeoutError):
    """The work did not end in the time given."""

    code, number = "DEADLINE_EXCEEDED", 4


class NotFoundError(OpError, LookupError):
    """A name that is not registered, or a file that is not there."""

    code, number = "NOT_FOUND", 5


class AlreadyExistsError(OpError):
    """A name that is taken."""

    code, number = "ALREADY_EXISTS", 6


class PermissionDeniedError(OpError, PermissionError):
    """Something the caller may not do."""

    code, number = "PERMISSION_DENIED", 7


class ResourceExhaustedError(OpError, MemoryError):
    """Memory, a size limit or a count limit ran out."""

    code, number = "RESOURCE_EXHAUSTED", 8


class FailedPreconditionError(OpError, RuntimeError):
    """A call in a state that does not allow it."""

    code, number = "FAILED_PRECONDITION", 9


class AbortedError(OpError):
    """Work given up because of a concurrent change."""

    code, number = "ABORTED", 10


class OutOfRangeError(OpError, IndexError):
    """A position outside what there is."""

    code, number = "OUT_OF_RANGE", 11


class UnimplementedError(OpError, NotImplementedError):
    """Something well defined that is not built; the message names what and where."""

    code, number = "UNIMPLEMENTED", 12


class InternalError(OpError, RuntimeError):
    """A broken promise inside cyxla: please report it."""

    code, number = "INTERNAL", 13


class UnavailableError(OpError):
    """A service that cannot be reached now."""

    code, number = "UNAVAILABLE", 14


class NoCompilerError(UnavailableError):
    """A C compiler is wanted and there is none."""


class DataLossError(OpError):
    """Stored data that is damaged."""

    code, number = "DATA_LOSS", 15


class UnauthenticatedError(OpError):
    """A request without valid credentials."""

    code, number = "UNAUTHENTICATED", 16


_BY_NUMBER: dict[int, type[OpError]] = {
    cls.number: cls
    for cls in (
        CancelledError, UnknownError, InvalidArgumentError, DeadlineExceededError, NotFoundError, AlreadyExistsError,
        PermissionDeniedError, ResourceExhaustedError, FailedPreconditionError, AbortedError, OutOfRangeError,
        UnimplementedError, InternalError, UnavailableError, DataLossError, UnauthenticatedError,
    )
}  # fmt: skip


def from_code(number: int, message: str) -> OpError:
    """Build the error of a canonical code number, as native code reports it.

    Parameters
    ----------
    number : int
        A canonical code, 1 to 16; another number gives an `UnknownError`.
    message : str
        What went wrong.
    """
    return _BY_NUMBER.get(number, UnknownError)(message)
