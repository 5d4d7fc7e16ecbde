"""Cancellation of steps: callbacks that wake waiting work."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from threading import Condition, get_ident

from cyxla.forking import new_condition, new_lock

_MAKING = new_lock()


class CancellationManager:
    """Registry of callbacks that run once, on cancellation.

    Parameters
    ----------
    parent : CancellationManager, optional
        Manager whose cancellation cancels this one.
    """

    def __init__(self, parent: CancellationManager | None = None) -> None:
        self._tokens = count()
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._children: list[CancellationManager] = []
        self._condition: Condition | None = None  # most steps end without anybody waiting
        self._runner = 0  # the thread that runs the callbacks
        self.is_cancelling = False
        self.is_cancelled = False
        self._parent = parent
        if parent is not None and not parent._adopt(self):
            self.start_cancel()

    @property
    def _state(self) -> Condition:
        state = self._condition
        if state is None:
            with _MAKING:
                state = self._condition = self._condition or new_condition()
        return state

    def get_cancellation_token(self) -> int:
        """Return a new token for `register_callback`."""
        return next(self._tokens)

    def register_callback(self, token: int, callback: Callable[[], object]) -> bool:
        """Register a callback; return False without registering it if cancellation has begun."""
        with self._state:
            if self.is_cancelling or self.is_cancelled:
                return False
            self._callbacks[token] = callback
            return True

    def deregister_callback(self, token: int) -> bool:
        """Deregister a callback; if it has run or is running, wait for its end and return False.

        Callbacks may deregister themselves and others without waiting for their own end.
        """
        with self._state:
            if not self.is_cancelling and not self.is_cancelled:
                return self._callbacks.pop(token, None) is not None
            while not self.is_cancelled and self._runner != get_ident():
                self._state.wait()
            return False

    def try_deregister_callback(self, token: int) -> bool:
        """Deregister a callback; return False without waiting if cancellation has begun."""
        with self._state:
            return not (self.is_cancelling or self.is_cancelled) and self._callbacks.pop(token, None) is not None

    def start_cancel(self) -> None:
        """Run every callback in the calling thread, then those of the children; later calls do nothing."""
        with self._state:
            if self.is_cancelling or self.is_cancelled:
                return
            self.is_cancelling, self._runner = True, get_ident()
            callbacks, self._callbacks = list(self._callbacks.values()), {}
            children, self._children = self._children, []
        try:
            for callback in (*callbacks, *(child.start_cancel for child in children)):
                callback()
        finally:
            with self._state:
                self.is_cancelling, self.is_cancelled, self._runner = False, True, 0
                self._state.notify_all()

    def close(self) -> None:
        """Detach from the parent, which would otherwise keep the manager of every step alive."""
        if self._parent is not None:
            self._parent._release(self)

    def _adopt(self, child: CancellationManager) -> bool:
        with self._state:
            if self.is_cancelling or self.is_cancelled:
                return False
            self._children.append(child)
            return True

    def _release(self, child: CancellationManager) -> None:
        with self._state:
            if child in self._children:
                self._children.remove(child)
