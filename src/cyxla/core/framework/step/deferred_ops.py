"""Work of kernels that goes on after they have returned, for which their step waits."""

from __future__ import annotations

from cyxla.errors import DeadlineExceededError, InternalError
from cyxla.forking import new_condition


class DeferredOps:
    """Counter of deferred operations."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = new_condition()

    def increment(self) -> None:
        """Count an operation that has begun."""
        with self._changed:
            self._count += 1

    def decrement(self) -> None:
        """Count an operation that has ended.

        Raises
        ------
        InternalError
            More operations have ended than begun.
        """
        with self._changed:
            if not self._count:
                raise InternalError("the number of deferred operations was decremented below zero")
            self._count -= 1
            self._changed.notify_all()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until all operations have ended.

        Raises
        ------
        DeadlineExceededError
            They did not end within `timeout` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: not self._count, timeout):
                raise DeadlineExceededError(f"{self._count} deferred operations did not end with their step")
