"""Calls that Ctrl-C interrupts immediately: they run on another thread while the main thread waits."""

from __future__ import annotations

import threading
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from cyxla._native._rt import count_abandoned


class _Call:
    """A call on another thread. A forked child has at most one of the two threads that use its locks."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.result: Any = None
        self.error: BaseException | None = None
        self.begun = self.done = self.abandoned = False
        self.guard, self.ended = allocate_lock(), allocate_lock()
        self.ended.acquire()

    def run(self) -> None:
        """Run the call on its thread, unless it has been abandoned already."""
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
        """Detach the call, because a signal handler has raised an exception."""
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
    """Call a function on another thread, so that the main thread can handle signals.

    If a signal handler raises an exception, as that of Ctrl-C does, it propagates immediately, and the result of the
    call is dropped. A call that has begun runs to its end; one that has not begun is never made.

    Parameters
    ----------
    function : callable
        Function that keeps the objects it uses alive, and changes shared ones only under a lock.
    """
    if threading.current_thread() is not threading.main_thread():
        return function()  # only the main thread handles signals
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
        call.error = None  # breaks the reference cycle of the error and its frames
