"""Python's search for garbage cycles, made rare while graphs and programs grow.

Little of a growing structure is garbage, and each search goes through all of it. A sixth of the time of a first call
went there.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cyxla.forking import call_in_child, new_lock

THRESHOLD: Final = 100_000  # new containers between two searches, in place of 700: about ten megabytes


class _Pause:
    """Count of the blocks that are under way, of which the first raises the threshold and the last restores it."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._count = 0
        self._before: tuple[int, ...] = ()
        self._full_searches = -1  # number of full searches when new containers were last declared old

    def begin(self) -> None:
        """Begin a block."""
        with self._lock:
            self._count += 1
            before = gc.get_threshold()
            if self._count == 1 and 0 < before[0] < THRESHOLD:
                self._before = before
                gc.set_threshold(THRESHOLD, *before[1:])

    def end(self) -> None:
        """End a block."""
        with self._lock:
            self._count = max(self._count - 1, 0)
            if not self._count:
                self.restore()

    def collect(self) -> None:
        """Search the containers that are new since the last search, if a block is under way that has made many.

        The first time, and after each full search, they are declared old instead, which takes no time: most of them
        live long, and the next full search finds the others.
        """
        if not self._before or not gc.isenabled() or gc.get_count()[0] <= self._before[0]:
            return
        full_searches = gc.get_stats()[2]["collections"]
        if full_searches == self._full_searches or gc.get_freeze_count():
            gc.collect(0)
            return
        self._full_searches = full_searches
        gc.freeze()  # into the permanent generation
        gc.unfreeze()  # and from there into the oldest one

    def restore(self) -> None:
        """Restore the threshold, unless somebody else has set it meanwhile."""
        if self._before and gc.get_threshold()[0] == THRESHOLD:
            gc.set_threshold(*self._before)
        self._before, self._count = (), 0


_pause = _Pause()
call_in_child(_pause.restore)  # the threads of other blocks are the parent's


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Search for garbage cycles less often, in all threads, until the last of such blocks ends."""
    _pause.begin()
    try:
        yield
    finally:
        _pause.end()


def collect_while_idle() -> None:
    """Search for garbage cycles now, since this thread is about to wait: within a block, instead of at its end.

    The compilers that it waits for may need all processors, so that the first search of a process is left to the next
    full one.
    """
    _pause.collect()
