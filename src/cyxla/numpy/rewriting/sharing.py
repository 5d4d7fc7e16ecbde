"""Arrays of which a trace does not know which array of the program they are: writes to them are refused."""

from __future__ import annotations

from typing import NoReturn

from cyxla.errors import TraceError
from cyxla.numpy.tracing.known_array import KnownArray
from cyxla.numpy.tracing.trace import user_line
from cyxla.numpy.tracing.traced_array import TracedArray, View
from cyxla.xla.hlo.builder import XlaOp


class _Undecided(View):
    """View of an array that may be another one."""


def is_undecided(array: TracedArray) -> bool:
    """Return True for an array that is one or another, by a branch or loop."""
    return isinstance(array._view, _Undecided)


def refuse_sharing(array: TracedArray, name: str, other: TracedArray, cause: str) -> None:
    """Make later writes to an array, or to the one that it may be, an error."""

    def refuse(*_: XlaOp) -> NoReturn:
        raise TraceError(
            f"{name} is another array or a new one, by {cause}, and one of them is written",
            where=user_line(), hint=f"copy it: {name} = {name}.copy()",
        )  # fmt: skip

    array._view = _Undecided(other, refuse, refuse, other.op)


def refuse_use(array: TracedArray, name: str) -> None:
    """Make each later use of an array an error."""

    def refuse(*_: XlaOp) -> NoReturn:
        raise TraceError(
            f"an array that {name} named before a loop is used after it, though the loop both wrote and replaced it",
            where=user_line(), hint=f"copy it before the loop: {name} = {name}.copy()",
        )  # fmt: skip

    other = TracedArray(array.op)
    if isinstance(array, KnownArray):
        array.become_traced()
    array._view = View(other, refuse, refuse, None)  # type: ignore[arg-type]
