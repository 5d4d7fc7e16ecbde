"""The errors and warnings of cyxla.

There is one class for each of TensorFlow's canonical codes; most are also subclasses of a built-in exception::

    OpError
    ├─ CancelledError            1
    ├─ UnknownError              2
    ├─ InvalidArgumentError      3   ValueError
    │  ├─ ShapeError                 mismatched shapes
    │  ├─ DTypeError                 TypeError: mismatched element types
    │  ├─ TraceError                 TypeError: a Python function that cannot be traced
    │  └─ HloParseError              malformed HLO text, with line and column
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

from typing import Any, ClassVar

_MAX_LINES, _MAX_CHARACTERS = 15, 900
_MAX_DETAIL_LINES, _MAX_DETAIL = 3, 200  # of `where` and `hint` in a text that is shortened


class OpError(Exception):
    """Base class of all errors: a message, a location, and a hint.

    The text of an error has at most 15 lines and 900 characters; the middle of a longer text is left out. The
    attributes hold the full texts.

    Parameters
    ----------
    message : str
        Description of the error.
    rule : str, optional
        Numbered constraint that is violated, such as ``"concatenate C4"``.
    where : str, optional
        Node, instruction or file position of the error.
    hint : str, optional
        Advice for a correction.
    node, op : str, optional
        Name and type of the graph node that failed.
    """

    code: ClassVar[str] = "UNKNOWN"
    number: ClassVar[int] = 2
    may_fall_back: bool = True  # unless the failed trace of a function has changed something that cannot be undone

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
        text = _join(self.message, self.where, self.hint)
        if len(text) <= _MAX_CHARACTERS and text.count("\n") < _MAX_LINES:
            return text
        where, hint = (_elide_middle(part, _MAX_DETAIL_LINES, _MAX_DETAIL) for part in (self.where, self.hint))
        details = _join("", where, hint)
        lines, characters = _MAX_LINES - details.count("\n"), _MAX_CHARACTERS - len(details)
        return _join(_elide_middle(self.message, lines, characters), where, hint)


Error = OpError


def without_frames(error: OpError) -> OpError:
    """Return a copy of an error without traceback and causes, whose frames would keep the values of their names."""
    copy = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    return copy


def _join(message: str, where: str, hint: str) -> str:
    """Return the text of an error."""
    lines = [message]
    if where:
        lines.append(f"  at:   {where}")
    if hint:
        lines.append(f"  mend: {hint}")
    return "\n".join(lines)


def _elide_middle(text: str, lines: int, characters: int) -> str:
    """Shorten a text to a number of lines and characters; a third of the rest is its end, which may hold the cause."""
    rows = text.split("\n")
    if len(rows) > lines:
        last = max(1, (lines - 1) // 3)
        text = "\n".join([*rows[: lines - 1 - last], "…", *rows[len(rows) - last :]])
    if len(text) > characters:
        last = characters // 3
        text = f"{text[: characters - last - 3]} … {text[-last:]}"
    return text


class CancelledError(OpError):
    """A computation that the caller or a signal cancelled."""

    code, number = "CANCELLED", 1


class UnknownError(OpError):
    """An error without a code."""


class InvalidArgumentError(OpError, ValueError):
    """An argument, attribute or program that violates a constraint."""

    code, number = "INVALID_ARGUMENT", 3


class ShapeError(InvalidArgumentError):
    """Shapes that do not match each other or the operation."""


class DTypeError(InvalidArgumentError, TypeError):
    """Element types that do not match each other or the operation."""


class TraceError(InvalidArgumentError, TypeError):
    """A Python function that cannot be traced into a computation.

    Parameters
    ----------
    message : str
        Text of the error.
    needed : object, optional
        The value that the function needed, if the values of some arguments determine it.
    **details
        Arguments of `OpError`.
    """

    def __init__(self, message: str, *, needed: Any = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.needed = needed


class HloParseError(InvalidArgumentError):
    """Malformed HLO text.

    Parameters
    ----------
    message : str
        Expected text and text found.
    line, column : int
        Position of the error, counted from 1.
    """

    def __init__(self, message: str, line: int = 0, column: int = 0, *, hint: str = "") -> None:
        self.line, self.column = line, column
        super().__init__(f"{line}:{column}: {message}" if line else message, hint=hint)


class RecompileWarning(UserWarning):
    """A function that is recompiled repeatedly, because the signature of an argument keeps changing."""

    may_fall_back = False  # where warnings are errors


class LongTraceWarning(UserWarning):
    """A loop was unrolled while it was traced, and made many operations."""

    may_fall_back = False  # where warnings are errors


class FallbackWarning(UserWarning):
    """A function that NumPy runs as it is written, since it cannot be compiled."""


class UnknownAttributeWarning(UserWarning):
    """A graph with undeclared attributes, which are ignored."""


class ElidedConstantWarning(UserWarning):
    """A program printed without the values of its large constants, which are read as zeros."""


class DeadlineExceededError(OpError, TimeoutError):
    """A computation that exceeded its time limit."""

    code, number = "DEADLINE_EXCEEDED", 4


class NotFoundError(OpError, LookupError):
    """An unregistered name, or a missing file."""

    code, number = "NOT_FOUND", 5


class AlreadyExistsError(OpError):
    """A name that is already registered."""

    code, number = "ALREADY_EXISTS", 6


class PermissionDeniedError(OpError, PermissionError):
    """An operation that the caller is not permitted to do."""

    code, number = "PERMISSION_DENIED", 7


class ResourceExhaustedError(OpError, MemoryError):
    """Exhausted memory, or an exceeded size or count limit."""

    code, number = "RESOURCE_EXHAUSTED", 8


class FailedPreconditionError(OpError, RuntimeError):
    """A call in a state that does not allow it."""

    code, number = "FAILED_PRECONDITION", 9


class AbortedError(OpError):
    """A computation aborted because of a concurrent change."""

    code, number = "ABORTED", 10


class OutOfRangeError(OpError, IndexError):
    """An index out of range."""

    code, number = "OUT_OF_RANGE", 11


class UnimplementedError(OpError, NotImplementedError):
    """A valid program or call that is not supported; the message names the feature and its location."""

    code, number = "UNIMPLEMENTED", 12


class InternalError(OpError, RuntimeError):
    """A violated invariant of cyxla, which should be reported as a bug."""

    code, number = "INTERNAL", 13


class UnavailableError(OpError):
    """A service that is unavailable at present."""

    code, number = "UNAVAILABLE", 14


class NoCompilerError(UnavailableError):
    """A missing C compiler."""


class DataLossError(OpError):
    """Corrupted data."""

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
    """Return the error of a canonical code number, as native code reports it.

    Parameters
    ----------
    number : int
        Canonical code, 1 to 16; any other number gives an `UnknownError`.
    message : str
        Description of the error.
    """
    return _BY_NUMBER.get(number, UnknownError)(message)
