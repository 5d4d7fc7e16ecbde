"""Calls that Ctrl-C interrupts at once: a thread of its own makes the call while the main thread waits."""

from __future__ import annotations

import threading
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from cyxla._native._rt import count_abandoned


class _Call:
    """One call; a forked child has at most one of the two threads that use its locks."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.result: Any = None
        self.error: BaseException | None = None
        self.begun = self.done = self.abandoned = False
        self.guard, self.ended = allocate_lock(), allocate_lock()
        self.ended.acquire()

    def run(self) -> None:
        """Make the call in its own thread, unless it has been abandoned already."""
        with self.guard:
            if self.abandoned:
                return
            self.begun = True
        try:
            self.result = self.function()
        except BaseException as error:
            self.error = error
        with self.guard:
            self.done = True
            if self.abandoned:
                count_abandoned(-1)
        self.ended.release()

    def abandon(self) -> None:
        """Leave the call to its thread, because a signal handler has raised."""
        with self.guard:
            self.abandoned = not self.done
            if self.abandoned and self.begun:
                count_abandoned(1)

    def value(self) -> Any:
        """Return the result of the call, or raise its error."""
        if self.error is not None:
            raise self.error
        return self.result


def interruptible(function: Callable[[], Any]) -> Any:
    """Call a function in a thread of its own while the main thread can handle signals.

    When a signal handler raises, as that of Ctrl-C does, its exception is raised at once, and the result of the call is
    dropped. A call that has begun goes on to its end; one that has not is never made.

    Parameters
    ----------
    function : callable
        Function that keeps all objects that it uses alive, and changes shared ones only under a lock.
    """
    if threading.current_thread() is not threading.main_thread():
        return function()  # signals are the main thread's
    context = copy_context()
    call = _Call(lambda: context.run(function))
    try:
        try:
            start_new_thread(call.run, ())
        except RuntimeError:  # no more threads
            return function()
        call.ended.acquire()
    except BaseException:
        call.abandon()
        raise
    try:
        return call.value()
    finally:
        call.error = None  # no cycle of frames and error
