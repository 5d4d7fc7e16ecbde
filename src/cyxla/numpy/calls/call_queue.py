"""Queue of calls that a single background thread makes in order."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from cyxla.forking import call_in_child, new_lock
from cyxla.numpy.tracing.user_program.api_boundary import api_boundary

_LOCK = new_lock()
_queue: ThreadPoolExecutor | None = None


class QueuedResult(Future):  # type: ignore[type-arg]
    """Result of a queued call; its errors are raised without the frames of the queue."""

    result = api_boundary(Future.result)


def submit(function: Callable[..., Any], *args: Any, **kwargs: Any) -> QueuedResult:
    """Queue a call."""
    global _queue
    future = QueuedResult()
    with _LOCK:
        if _queue is None:
            _queue = ThreadPoolExecutor(1, "cyxla-calls")
        _queue.submit(_run_call, future, function, args, kwargs)
    return future


def _run_call(future: QueuedResult, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(function(*args, **kwargs))
    except BaseException as error:
        future.set_exception(error)


def _drop_executor() -> None:
    """Forget the thread, which a forked child does not have."""
    global _queue
    _queue = None


call_in_child(_drop_executor)
