"""Long calls of libraries that Ctrl-C ends at once: a thread of its own makes the call, and the main thread waits."""

from __future__ import annotations

import threading
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from cyxla._native._rt import count_abandoned


class _Call:
    """One call; its locks are of two threads of which a forked child has one at most."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = self.abandoned = False
        self.guard, self.ended = allocate_lock(), allocate_lock()
        self.ended.acquire()

    def run(self) -> None:
        """Make the call, in the thread of its own."""
        try:
            self.result = self.function()
        except BaseException as error:
            self.error = error
        with self.guard:
            self.done = True
            if self.abandoned:
                count_abandoned(-1)
        self.ended.release()

    def wait(self) -> Any:
        """Give the result, unless a signal handler raises first."""
        try:
            self.ended.acquire()
        except BaseException:
            with self.guard:
                self.abandoned = not self.done
                if self.abandoned:
                    count_abandoned(1)
            raise
        if self.error is not None:
            raise self.error
        return self.result


def interruptible(function: Callable[[], Any]) -> Any:
    """Call a function such that the main thread sees signals meanwhile.

    When a handler raises, as that of Ctrl-C does, its exception is raised at once. The call goes on until it ends by
    itself; what it gives is dropped.

    Parameters
    ----------
    function : callable
        It keeps alive all that it uses, and changes nothing that others see.
    """
    if threading.current_thread() is not threading.main_thread():
        return function()  # signals are the main thread's
    context = copy_context()
    call = _Call(lambda: context.run(function))
    try:
        start_new_thread(call.run, ())
    except RuntimeError:  # no more threads
        return function()
    try:
        return call.wait()
    finally:
        call.error = None  # no cycle of frames and error
