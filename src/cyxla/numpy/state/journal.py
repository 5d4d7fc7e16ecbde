"""Journal of the attributes, globals and variables of enclosing functions that a traced function writes.

A loop or branch whose body is recorded once reads there what its body has written, and takes it back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from types import CellType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cyxla.numpy.tracing.trace import current

if TYPE_CHECKING:
    from cyxla.numpy.state.effects import Effect
    from cyxla.numpy.state.outside import OutsideValues

ABSENT: Final = object()


class Place(ABC):
    """Place that a function can write."""

    key: Hashable
    text: str

    @abstractmethod
    def state(self) -> Any:
        """Return what `restore` takes."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Go back to an earlier state."""

    @abstractmethod
    def value(self) -> Any:
        """Return the value as the function sees it; `ABSENT` if there is none."""

    @abstractmethod
    def assign(self, value: Any) -> None:
        """Give the place another value."""


class AttributeOf(Place):
    """Attribute of an object that belongs to the trace."""

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name
        self.key, self.text = (id(owner), name), f"the attribute {name} of a {type(owner).__name__}"

    def state(self) -> Any:
        """Return the value."""
        return self.value()

    def restore(self, state: Any) -> None:
        """Assign an earlier value, or delete the attribute."""
        if state is not ABSENT:
            setattr(self.owner, self.name, state)
        elif hasattr(self.owner, self.name):
            delattr(self.owner, self.name)

    def value(self) -> Any:
        """Return the value."""
        return getattr(self.owner, self.name, ABSENT)

    def assign(self, value: Any) -> None:
        """Set the attribute."""
        setattr(self.owner, self.name, value)


class ContentsOf(Place):
    """Variable of a function that is being traced, which a function inside it writes."""

    def __init__(self, cell: CellType, name: str) -> None:
        self.cell = cell
        self.key, self.text = id(cell), name

    def state(self) -> Any:
        """Return the value."""
        return self.value()

    def restore(self, state: Any) -> None:
        """Assign an earlier value, or unbind the variable."""
        if state is not ABSENT:
            self.cell.cell_contents = state
        elif self.value() is not ABSENT:
            del self.cell.cell_contents

    def value(self) -> Any:
        """Return the value."""
        try:
            return self.cell.cell_contents
        except ValueError:  # it is empty
            return ABSENT

    def assign(self, value: Any) -> None:
        """Bind the variable."""
        self.cell.cell_contents = value


class ChangeOf(Place):
    """Place outside of the function, which gets its new value after the run."""

    def __init__(self, outside: OutsideValues, identity: Hashable, effect: Effect) -> None:
        self.outside, self.identity, self.effect = outside, identity, effect
        self.key, self.text = identity, effect.text

    def state(self) -> Any:
        """Return the change that was recorded before, if any."""
        return self.outside.changes.get(self.identity)

    def restore(self, state: Any) -> None:
        """Go back to an earlier change, or to none."""
        if state is not None:
            self.outside.changes[self.identity] = state
        else:
            self.outside.changes.pop(self.identity, None)

    def value(self) -> Any:
        """Return the value as the function sees it."""
        return self.outside.present(self.identity)

    def assign(self, value: Any) -> None:
        """Record a change."""
        self.outside.changes[self.identity] = self.effect, value


class Written(NamedTuple):
    """Place that was written.

    Attributes
    ----------
    place : Place
        Place.
    before, after : object
        Values before the first write and now.
    """

    place: Place
    before: Any
    after: Any


class Journal:
    """Writes of a trace, in order."""

    def __init__(self) -> None:
        self._entries: list[tuple[Place, Any, Any]] = []

    def note(self, place: Place) -> None:
        """Note the state of a place that is about to be written."""
        self._entries.append((place, place.state(), place.value()))

    @property
    def mark(self) -> int:
        """Number that stands for the present."""
        return len(self._entries)

    def since(self, mark: int) -> list[Written]:
        """Return the places that were written since a mark."""
        first: dict[Hashable, Written] = {}
        for place, _, before in self._entries[mark:]:
            first.setdefault(place.key, Written(place, before, None))
        return [w._replace(after=w.place.value()) for w in first.values()]

    def undo(self, mark: int) -> None:
        """Give all places what they had at a mark."""
        for place, state, _ in reversed(self._entries[mark:]):
            place.restore(state)
        del self._entries[mark:]


def journal() -> Journal:
    """Return the journal of the function being traced."""
    trace = current()
    assert trace is not None
    program = trace.program
    if program.journal is None:
        program.journal = Journal()
    found: Journal = program.journal
    return found


def is_recorded() -> bool:
    """Return True in the body of a loop, or on a side of a branch, that is recorded."""
    trace = current()
    return trace is not None and trace.parent is not None
