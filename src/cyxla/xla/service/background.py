"""Work that nobody waits for: done by a thread of its own, one piece after the other.

The thread is there from the first piece on. A fork waits for the piece under way: what the thread is just importing
would stay half imported in the child. A forked child has a thread of its own, with what was not done yet, once it
submits or waits for something: most children end sooner. A process that ends waits a while for the first piece that is
not done, and leaves the others.
"""

from __future__ import annotations

import atexit
import os
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue
from threading import Event

from cyxla.forking import new_lock

PATIENCE = 10.0  # seconds that a fork waits
END_PATIENCE = 10.0  # seconds that the end of the process waits
_CLEANING_UP = 2.0  # seconds for a piece that was told to stop


class Job:
    """A piece of work.

    Parameters
    ----------
    run : callable
        Does it; what it raises is logged, and goes no further.
    """

    def __init__(self, run: Callable[[], None]) -> None:
        self.run = run
        self.done = Event()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is done, for so many seconds at most; says whether it is."""
        if not self.done.is_set():
            with _lock:
                _start()
        return self.done.wait(timeout)


_jobs: deque[Job] = deque()  # the first is under way, or about to be
_queue: SimpleQueue[Job] = SimpleQueue()
_lock, _busy = new_lock(), new_lock()
_running = _ending = False
_last: Job | None = None  # of a process that ends
_at_end: list[Callable[[], None]] = []


def submit(run: Callable[[], None]) -> Job:
    """Have something done; returns at once."""
    job = Job(run)
    with _lock:
        _jobs.append(job)
        _start()
    _queue.put(job)
    return job


def _start() -> None:
    """Start the thread. `threading.Thread` would wait for it, and it would go on with its work first."""
    global _running
    if not _running:
        _watch_forks()
        try:
            start_new_thread(_work, (_queue,))
        except RuntimeError:  # no more threads, or the interpreter is ending: the next one may have more luck
            return
        _running = True


def _work(queue: SimpleQueue[Job]) -> None:
    while True:
        job = queue.get()
        try:
            if not _ending or job is _last:
                with _busy:
                    job.run()
        except Exception:  # the next ones are to be done all the same
            import logging

            logging.getLogger(__name__).exception("work in the background failed")
        finally:
            _jobs.remove(job)
            job.done.set()


def call_at_end(function: Callable[[], None]) -> Callable[[], None]:
    """Have a function called when the process ends and waits for nothing any more: a decorator."""
    _at_end.append(function)
    return function


@atexit.register
def _end() -> None:
    global _ending, _last
    _last = next(iter(_jobs), None)
    _ending = True
    waits = _last is not None and _running
    try:
        if _last is not None and waits:
            _last.done.wait(END_PATIENCE)
    except KeyboardInterrupt:  # so much the sooner
        pass
    finally:
        for function in _at_end:
            function()
    if _last is not None and waits:
        _last.done.wait(_CLEANING_UP)


# --- forks ------------------------------------------------------------------------------------------------------------

_held = False  # by a fork


@cache
def _watch_forks() -> None:
    """Be called at forks.

    Before a fork, those who registered last are called first. `logging` holds a lock then that the thread may ask for:
    it has to come after `_hold`.
    """
    import logging  # noqa: F401

    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_renew)


def _hold() -> None:
    global _held
    _held = _busy.acquire(timeout=PATIENCE)


def _let_go() -> None:
    if _held:
        _busy.release()


def _renew() -> None:
    """Begin again in a forked child, which does not have the thread."""
    global _queue, _lock, _busy, _running
    _queue, _lock, _busy, _running = SimpleQueue(), new_lock(), new_lock(), False
    for job in _jobs:
        job.done = Event()
        _queue.put(job)
