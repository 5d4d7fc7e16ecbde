"""Arrays of which a trace does not know which arrays of the program they are: branches, loops and sizes decide that.

A write to such an array may be one to another array, whose value in the trace is then wrong, and the other way round:
later uses of it are refused.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, View
from cyxla.numpy.tracing.trace import PlainRunError, current, is_under_way, plain_run, user_line
from cyxla.xla.hlo.builder import XlaOp

#: Greatest number of arrays of which an array may be one: unrolled loops with branches would make ever more of them.
MOST_ROOTS = 50


class SharedArrayError(TraceError):
    """A write to an array that may be another one, or a use of one that may have been written."""


class Sharing:
    """Relations of an array to others, one of which it may be.

    Attributes
    ----------
    may_be : list of TracedArray
        Arrays that it may be, none of them a view.
    may_be_untraced : bool
        True if it may be an array that is not traced.
    was_written : bool
        True if an array that may be this one was written.
    """

    __slots__ = ("_cause", "_name", "_others", "_seen", "may_be", "may_be_untraced", "was_written")

    def __init__(self) -> None:
        self.may_be: list[TracedArray] = []
        self.may_be_untraced = self.was_written = False
        self._name = self._cause = ""
        self._seen: list[tuple[TracedArray, tuple[XlaOp | None, bool]]] = []
        self._others: list[weakref.ref[TracedArray]] = []  # which may be this array

    def add(self, array: TracedArray, roots: Sequence[TracedArray], name: str, cause: str) -> None:
        """Note that an array, to which this belongs, may be one of others."""
        self._name, self._cause = self._name or name, self._cause or cause
        known = {id(r) for r in self.may_be}
        new = [r for r in roots if id(r) not in known]
        self.may_be += new
        self._seen += [(r, _state_of(r)) for r in new]
        for root in new:
            sharing_of(root)._others.append(weakref.ref(array))

    def others(self) -> list[TracedArray]:
        """Return the arrays of traces that are under way that may be this one."""
        found = [array for other in self._others if (array := other()) is not None]
        return [array for array in found if is_under_way(array.owner)]

    def before_read(self) -> None:
        """Refuse a use of the array if another one that it may be was written.

        Raises
        ------
        SharedArrayError
            It was.
        """
        for root, (value, is_refused) in self._seen:
            new_value, is_refused_now = _state_of(root)
            if new_value is not value or is_refused_now is not is_refused:
                self.refuse()

    def before_write(self) -> None:
        """Make later uses of the arrays errors that the array may be.

        Raises
        ------
        SharedArrayError
            A write to one of them would be seen outside of the function, or by other iterations.
        PlainRunError
            It may be an array that is not traced.
        """
        if self.may_be_untraced:
            raise untraced_write()
        if any(root.origin or root.owner is not current() for root in self.may_be):
            self.refuse()
        for root in self.may_be:
            sharing_of(root).was_written = True
            _refuse_use(root, self.refuse)
        self._seen = []

    def refuse(self, *_: XlaOp) -> NoReturn:
        """Raise the error for a write to an array or another one that it may be."""
        raise SharedArrayError(
            f"{self._name} is another array or a new one, by {self._cause}, and one of them is written",
            where=user_line(),
            hint=_hint(self._name),
        )  # fmt: skip


def _hint(name: str) -> str:
    return f"copy it: {name} = {name}.copy()" if name.isidentifier() else "copy it"


def _state_of(array: TracedArray) -> tuple[XlaOp | None, bool]:
    """Return the value of an array, and whether its use is refused.

    There is no value for an array of known values, which is traced from the first write on.
    """
    return None if array.known is not None else array._op, isinstance(array.base, _Refused)


def sharing_of(array: TracedArray) -> Sharing:
    """Return the relations of an array to others, which may be none so far."""
    if array.sharing is None:
        array.sharing = Sharing()
    assert isinstance(array.sharing, Sharing)
    return array.sharing


def possible_roots(array: TracedArray) -> list[TracedArray]:
    """Return the arrays to one of which a write to an array goes: its root, and those that this may be."""
    root = array.root
    return [root, *root.sharing.may_be] if isinstance(root.sharing, Sharing) else [root]


def share(
    array: TracedArray, others: Sequence[TracedArray], name: str, cause: str, most: int | None = MOST_ROOTS
) -> None:
    """Note that a new array may be one of others, or a view of one.

    Parameters
    ----------
    array : TracedArray
        Array, which is no view.
    others : sequence of TracedArray
        Others, of this function or enclosing ones.
    name : str
        Name of its variable.
    cause : str
        Branch or loop that decides which one it is, for messages.
    most : int or None
        Greatest number of them; None for any.

    Raises
    ------
    TraceError
        There are more.
    """
    roots = [r for r in _distinct([r for a in others for r in possible_roots(a)]) if r is not array]
    if most is not None and len(roots) > most:
        raise TraceError(
            f"{name} is one of more than {most} arrays, by {cause}", where=user_line(), hint=_hint(name),
        )  # fmt: skip
    if roots:
        sharing_of(array).add(array, roots, name, cause)


def may_be_untraced(value: Any) -> bool:
    """Return True for an array that is static or was computed by NumPy itself, and for one that may be one."""
    if isinstance(value, TracedArray):
        sharing = value.root.sharing
        return isinstance(sharing, Sharing) and sharing.may_be_untraced
    return isinstance(value, np.ndarray)


def stand_for_untraced(array: TracedArray) -> TracedArray:
    """Refuse writes to an array, and to views of it, that may be one that is not traced."""
    sharing_of(array.root).may_be_untraced = True
    return array


def untraced_write() -> PlainRunError:
    """Return the error of a write that an array which is not traced would not get."""
    return plain_run(
        "a write to an array that is static, or was computed by NumPy itself", "write to a copy: np.array(x)"
    )


def has_other_names(array: TracedArray) -> bool:
    """Return True if arrays may share memory with one that are none of those that it may be."""
    roots = possible_roots(array)
    known = {id(r) for r in roots}
    found = [o for r in roots if isinstance(r.sharing, Sharing) for o in r.sharing.others()]
    return any(id(o) not in known for o in found)


def may_have_been_written(array: TracedArray) -> bool:
    """Return True if an array that may be this one was written."""
    return isinstance(array.sharing, Sharing) and array.sharing.was_written


def _distinct(arrays: Sequence[TracedArray]) -> list[TracedArray]:
    return list({id(a): a for a in arrays}.values())


class _Refused(TracedArray):
    """Base of arrays that must not be used any more."""

    __slots__ = ("_refuse",)

    def __init__(self, op: XlaOp, refuse: Callable[..., NoReturn]) -> None:
        super().__init__(op)
        self._refuse = refuse

    @property
    def op(self) -> XlaOp:
        """Raise the error."""
        self._refuse()


def _refuse_use(array: TracedArray, refuse: Callable[..., NoReturn]) -> None:
    if isinstance(array.base, _Refused):
        return
    if isinstance(array, KnownArray):
        array.become_traced()
    array._view = View(_Refused(array._op, refuse), refuse, refuse, None)  # type: ignore[arg-type]


def refuse_use(array: TracedArray, name: str) -> None:
    """Make each later use of an array an error that a loop both wrote and replaced."""

    def refuse(*_: XlaOp) -> NoReturn:
        raise TraceError(
            f"an array that {name} named before a loop is used after it, though the loop both wrote and replaced it",
            where=user_line(), hint=f"copy it before the loop: {name} = {name}.copy()",
        )  # fmt: skip

    _refuse_use(array, refuse)
