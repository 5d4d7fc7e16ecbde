"""Calls of executables on threads of their own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyxla.xla.service.executable import Executable


def start(executable: Executable, arguments: Sequence[Any], out: Any) -> Future[Any]:
    """Start a call, and return its future result."""
    future: Future[Any] = Future()
    context = copy_context()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = context.run(executable, *arguments, out=out)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="cyxla-execute", daemon=True).start()
    return future
