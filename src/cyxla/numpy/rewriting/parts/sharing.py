"""Arrays of which a trace does not know which array of the program they are: writes to them are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from cyxla.errors import TraceError
from cyxla.numpy.rewriting.parts.unbound import PossiblyUnbound
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, View
from cyxla.numpy.tracing.trace import user_line
from cyxla.xla.hlo.builder import XlaOp


class _Undecided(View):
    """View of an array that may be another one."""


class _Either(TracedArray):
    """Several arrays of which another one may be any: none of them may be written while it is read.

    Parameters
    ----------
    arrays : sequence of TracedArray
        The arrays.
    refuse : callable
        Function that raises the error.
    """

    __slots__ = ("_arrays", "_refuse")

    def __init__(self, arrays: Sequence[TracedArray], refuse: Callable[[], NoReturn]) -> None:
        super().__init__(arrays[0].unchecked_op)
        self._arrays = [(a, a.unchecked_op) for a in arrays]
        self._refuse = refuse

    @property
    def op(self) -> XlaOp:
        """Value of the first array; an error if one of them was written."""
        if any(array.unchecked_op is not before for array, before in self._arrays):
            self._refuse()
        return self._op


def possible_roots(array: TracedArray) -> list[TracedArray]:
    """Return the arrays to one of which a write to an array goes: its root, or several by branches or loops."""
    root = array.root
    if not isinstance(root, _Either):
        return [root]
    return _distinct([r for a, _ in root._arrays for r in possible_roots(a)])


def possible_arrays(array: TracedArray) -> list[TracedArray]:
    """Return the arrays of which an array may be any, by a branch or loop; none if that is known."""
    return possible_roots(array) if isinstance(array._view, _Undecided) else []


def _distinct(arrays: Sequence[TracedArray]) -> list[TracedArray]:
    return list({id(a): a for a in arrays}.values())


def refuse_sharing(array: TracedArray, name: str, others: Sequence[TracedArray], cause: str) -> None:
    """Make later writes to an array, or to those that it may be, an error."""

    def refuse(*_: XlaOp) -> NoReturn:
        raise TraceError(
            f"{name} is another array or a new one, by {cause}, and one of them is written",
            where=user_line(), hint=f"copy it: {name} = {name}.copy()",
        )  # fmt: skip

    distinct = _distinct([r for a in others for r in possible_roots(a)])
    is_single = len(distinct) == 1 and not isinstance(distinct[0], PossiblyUnbound)
    base = distinct[0] if is_single else _Either(distinct, refuse)
    array._view = _Undecided(base, refuse, refuse, base.op)


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
