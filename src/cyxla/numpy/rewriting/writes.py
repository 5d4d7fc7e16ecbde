"""What a pass over a loop's body, or a side of a branch, writes to objects that are older than it."""

from __future__ import annotations

from cyxla.numpy.state.journal import ABSENT, AttributeOf, Written, journal
from cyxla.numpy.tracing.trace import user_frame


class Writes:
    """Writes of attributes, globals and variables of enclosing functions from now on."""

    def __init__(self) -> None:
        frame = user_frame()
        self._objects = [] if frame is None else list(frame.f_locals.values())
        self._journal = journal()
        self._mark = self._journal.mark

    def changed(self) -> list[Written]:
        """Return the places that were written, without attributes of new objects."""
        known = {id(v) for v in self._objects}
        found = self._journal.since(self._mark)
        return [w for w in found if not _is_of_new_object(w, known) and w.after is not w.before]

    def undo(self) -> None:
        """Give all places what they had."""
        self._journal.undo(self._mark)


def _is_of_new_object(written: Written, known: set[int]) -> bool:
    place = written.place
    return isinstance(place, AttributeOf) and written.before is ABSENT and id(place.owner) not in known
