"""Rendezvous: exchange of values between devices and partitions of a graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Any

from cyxla.core.framework.device_base import DeviceName
from cyxla.core.framework.step.cancellation import CancellationManager
from cyxla.errors import AbortedError, CancelledError, DeadlineExceededError, InvalidArgumentError, OpError
from cyxla.forking import new_lock

Received = Callable[[OpError | None, Any, bool], object]
"""Called with (error, value, whether it is dead) when a value has come."""


@dataclass(frozen=True)
class ParsedKey:
    """Parts of a key; see `create_key`."""

    src_device: str
    src_incarnation: int
    dst_device: str
    edge_name: str
    frame_iter: tuple[int, int]


def create_key(
    src_device: str, src_incarnation: int, dst_device: str, edge_name: str, frame_iter: tuple[int, int] = (0, 0)
) -> str:
    """Return the key of a value: source and target device, edge, loop frame and iteration."""
    frame, iteration = frame_iter
    return f"{src_device};{src_incarnation:016x};{dst_device};{edge_name};{frame}:{iteration}"


def parse_key(key: str) -> ParsedKey:
    """Parse a key.

    Raises
    ------
    InvalidArgumentError
        The key does not have the form of `create_key`.
    """
    try:
        source, incarnation, target, edge, iteration_text = key.split(";")
        frame, iteration = iteration_text.split(":")
        for name in (source, target):
            DeviceName.parse(name)
        return ParsedKey(source, int(incarnation, 16), target, edge, (int(frame), int(iteration)))
    except ValueError:  # an InvalidArgumentError is one
        raise InvalidArgumentError(
            f"'{key}' is not a valid rendezvous key", hint="source;incarnation;target;edge;frame:iteration"
        ) from None


class Rendezvous:
    """Table of queues of values by key; sending never blocks.

    After `start_abort`, pending and later sends and receives fail with the given error.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._values: dict[str, deque[tuple[Any, bool]]] = {}
        self._waiting: dict[str, deque[Received]] = {}
        self._error: OpError | None = None

    def send(self, key: str, value: Any, is_dead: bool = False) -> None:
        """Pass a value to the first receiver that waits for the key, or queue it.

        Raises
        ------
        OpError
            The rendezvous was aborted.
        """
        with self._lock:
            if self._error is not None:
                raise self._error
            queue = self._waiting.get(key)
            if queue is None:
                self._values.setdefault(key, deque()).append((value, is_dead))
                return
            receiver = _pop_first(self._waiting, key, queue)
        receiver(None, value, is_dead)

    def recv_async(self, key: str, done: Received, cancellation: CancellationManager | None = None) -> None:
        """Call `done` with the next value of the key: at once if it is available, else in the sending thread.

        Parameters
        ----------
        key : str
            Key of the value; see `create_key`.
        done : callable
            Callback, called once with (error, value, is_dead).
        cancellation : CancellationManager, optional
            Manager whose cancellation ends the wait with `CancelledError`.
        """
        self._request(key, done, cancellation)

    def _request(self, key: str, done: Received, cancellation: CancellationManager | None) -> Received:
        """Pass the next value to a receiver, queued if there is none yet; return the callback used."""
        receiver = done
        if cancellation is not None:
            token = cancellation.get_cancellation_token()
            receiver = _deregistering(done, cancellation, token)
            cancellation.register_callback(token, lambda: self._cancel(key, receiver))
        with self._lock:
            error, queue = self._error, self._values.get(key)
            received = _pop_first(self._values, key, queue) if error is None and queue else None
            if error is None and received is None:
                self._waiting.setdefault(key, deque()).append(receiver)
        if error is not None or received is not None:
            receiver(error, *(received or (None, False)))
        elif cancellation is not None and (cancellation.is_cancelling or cancellation.is_cancelled):
            self._cancel(key, receiver)  # the callback may have run before the receiver was queued
        return receiver

    def recv(
        self, key: str, timeout: float | None = None, cancellation: CancellationManager | None = None
    ) -> tuple[Any, bool]:
        """Wait for the next value of the key.

        Returns
        -------
        value, is_dead
            Value that was sent, and True if it is dead.

        Raises
        ------
        OpError
            The rendezvous was aborted, or the wait was cancelled or exceeded `timeout` seconds.
        """
        results: list[tuple[OpError | None, Any, bool]] = []
        event = Event()

        def receive(error: OpError | None, value: Any, is_dead: bool) -> None:
            results.append((error, value, is_dead))
            event.set()

        receiver = self._request(key, receive, cancellation)
        if not event.wait(timeout) and self._forget(key, receiver):
            receiver(DeadlineExceededError(f"no value arrived within {timeout} s for {key}"), None, False)
        event.wait()
        error, value, is_dead = results[0]
        if error is not None:
            raise error
        return value, is_dead

    def start_abort(self, error: OpError | None = None) -> None:
        """Fail all pending and later operations; the first error is kept."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error or AbortedError("the rendezvous was aborted")
            waiting = [receiver for queue in self._waiting.values() for receiver in queue]
            self._waiting.clear()
            self._values.clear()
        for receiver in waiting:
            receiver(self._error, None, False)

    @property
    def is_idle(self) -> bool:
        """True if neither values nor receivers are pending."""
        return not self._values and not self._waiting

    def _cancel(self, key: str, receiver: Received) -> None:
        if self._forget(key, receiver):
            receiver(CancelledError(f"the wait for {key} was cancelled"), None, False)

    def _forget(self, key: str, receiver: Received) -> bool:
        with self._lock:
            queue = self._waiting.get(key, deque())
            if receiver not in queue:
                return False
            queue.remove(receiver)
            if not queue:
                del self._waiting[key]
            return True


def _pop_first(table: dict[str, deque[Any]], key: str, queue: deque[Any]) -> Any:
    """Pop the first item of a queue; empty queues are removed from the table."""
    first = queue.popleft()
    if not queue:
        del table[key]
    return first


def _deregistering(done: Received, cancellation: CancellationManager, token: int) -> Received:
    def receive(error: OpError | None, value: Any, is_dead: bool) -> None:
        cancellation.try_deregister_callback(token)
        done(error, value, is_dead)

    return receive
