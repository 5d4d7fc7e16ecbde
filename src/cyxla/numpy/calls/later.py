"""Calls that are made by and by, one after the other, by a thread of their own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

_LOCK = threading.Lock()
_queue: ThreadPoolExecutor | None = None


def submit(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Queue a call."""
    global _queue
    with _LOCK:
        if _queue is None:
            _queue = ThreadPoolExecutor(1, "cyxla-calls")
        return _queue.submit(function, *args, **kwargs)


def _forget() -> None:
    """Forget the thread, which a forked child does not have."""
    global _queue, _LOCK
    _queue, _LOCK = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
