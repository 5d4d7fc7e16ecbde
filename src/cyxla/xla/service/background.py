"""Background jobs: one thread runs them in order.

The thread starts with the first job. A fork waits for the running job, since modules that the thread is importing would
stay partially imported in the child. A forked child starts a thread of its own, for the jobs that were not done yet,
once it submits or awaits a job: most children never do. At exit the process waits a limited time for the first job that
is not done, and drops the others.
"""

from __future__ import annotations

import atexit
import os
from _queue import SimpleQueue  # that of `queue`, which also imports heapq
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import Event, Thread

from cyxla.forking import new_lock

FORK_TIMEOUT = 10.0  # seconds that a fork waits
EXIT_TIMEOUT = 10.0  # seconds that the exit of the process waits
_CLEANUP_TIMEOUT = 2.0  # seconds that a cancelled job may take to end


class Job:
    """A job of the background thread.

    Parameters
    ----------
    run : callable
        Function to call; its exceptions are logged and dropped.
    """

    def __init__(self, function: Callable[[], None]) -> None:
        self.run = function
        self.done = Event()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job is done, for at most `timeout` seconds, and return True if it is done."""
        if not self.done.is_set():
            with _lock:
                _start()
        return self.done.wait(timeout)


_jobs: deque[Job] = deque()  # the first is running, or is the next to run
_queue: SimpleQueue[Job] = SimpleQueue()
_lock, _busy = new_lock(), new_lock()
_running = _exiting = False
_last: Job | None = None  # the last job of a process that exits
_exit_functions: list[Callable[[], None]] = []


def submit(function: Callable[[], None]) -> Job:
    """Queue a job, and return immediately."""
    job = Job(function)
    with _lock:
        _jobs.append(job)
        _start()
    _queue.put(job)
    return job


def call_on_thread(function: Callable[[], None], name: str) -> None:
    """Call a function on a thread of its own; jobs and forks wait for its end, the exit of the process does not."""
    _watch_forks()

    def call() -> None:
        with _busy:
            function()

    with suppress(RuntimeError):  # no more threads
        Thread(target=call, name=name, daemon=True).start()


def _start() -> None:
    """Start the thread, unless it runs. At exit `threading.Thread` would be joined until all jobs are done."""
    global _running
    if not _running:
        _watch_forks()
        try:
            start_new_thread(_run_jobs, (_queue,))
        except RuntimeError:  # no more threads, or the interpreter is exiting: the next job tries again
            return
        _running = True


def _run_jobs(queue: SimpleQueue[Job]) -> None:
    while True:
        job = queue.get()
        try:
            if not _exiting or job is _last:
                with _busy:
                    job.run()
        except Exception:  # later jobs run all the same
            import logging

            logging.getLogger(__name__).exception("work in the background failed")
        finally:
            _jobs.remove(job)
            job.done.set()


def call_at_end(function: Callable[[], None]) -> Callable[[], None]:
    """Register a function that is called at exit, after the wait for the last job; usable as a decorator."""
    _exit_functions.append(function)
    return function


@atexit.register
def _run_at_exit() -> None:
    global _exiting, _last
    _last = next(iter(_jobs), None)
    _exiting = True
    waits = _last is not None and _running
    try:
        if _last is not None and waits:
            _last.done.wait(EXIT_TIMEOUT)
    except KeyboardInterrupt:  # exit now
        pass
    finally:
        for function in _exit_functions:
            function()
    if _last is not None and waits:
        _last.done.wait(_CLEANUP_TIMEOUT)


# --- forks ------------------------------------------------------------------------------------------------------------

_is_locked_by_fork = False  # True if a fork holds `_busy`


@cache
def _watch_forks() -> None:
    """Register the functions that are called at forks.

    Before a fork, functions are called in reverse order of registration. That of `logging` acquires a lock which the
    thread may need, so it must be registered first and called after `_before_fork`.
    """
    import logging  # noqa: F401

    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


def _before_fork() -> None:
    global _is_locked_by_fork
    _is_locked_by_fork = _busy.acquire(timeout=FORK_TIMEOUT)


def _after_fork_in_parent() -> None:
    if _is_locked_by_fork:
        _busy.release()


def _after_fork_in_child() -> None:
    """Requeue the jobs in a forked child, which does not have the thread."""
    global _queue, _lock, _busy, _running
    _queue, _lock, _busy, _running = SimpleQueue(), new_lock(), new_lock(), False
    for job in _jobs:
        job.done = Event()
        _queue.put(job)
