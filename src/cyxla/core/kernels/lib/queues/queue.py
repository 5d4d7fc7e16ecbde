"""Queues: resources to which steps add elements, and from which they take them, waiting without a thread.

An operation that cannot complete is an *attempt* that waits in the queue; the thread whose operation makes progress
possible completes it, and calls its callback after it has released the lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cyxla.core.framework.resource_mgr import ResourceBase
from cyxla.core.framework.step.cancellation import CancellationManager
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.kernels.lib.queues.attempts import Attempt, Outcome, advance, end, fail, finish_all
from cyxla.core.kernels.lib.queues.elements import check_shape, stack
from cyxla.core.kernels.lib.queues.stores import Element, Store
from cyxla.errors import CancelledError, InvalidArgumentError, OpError, OutOfRangeError, ResourceExhaustedError
from cyxla.forking import new_lock

Array = np.ndarray[Any, Any]
Added = Callable[[OpError | None], object]
"""Called with the error, or None, when elements were added or the queue was closed."""
Taken = Callable[[OpError | None, list[Array]], object]
"""Called with the error, or None, and the components."""
UNBOUNDED = (1 << 31) - 1
_BATCHED = {"": "DequeueMany and DequeueUpTo require", "PriorityQueue": "DequeueMany requires"}


class Queue(ResourceBase):
    """Queue of tuples of arrays.

    Parameters
    ----------
    kind : str
        Name of the kind of queue for error messages, such as ``"FIFOQueue"``.
    name : str
        Name of the queue.
    store : Store
        Container of the elements.
    dtypes : sequence of DataType
        Types of the components.
    shapes : sequence of TensorShape
        Shapes of the components; if empty, they may differ from element to element.
    capacity : int
        Number of elements from which on additions wait.

    Attributes
    ----------
    seeds : tuple of two int
        Seeds of a queue in random order.
    closed : bool
        True if no more elements can be added.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        store: Store,
        dtypes: Sequence[DataType],
        shapes: Sequence[TensorShape] = (),
        capacity: int = UNBOUNDED,
    ) -> None:
        self.kind, self.name, self.store = kind, name, store
        self.dtypes, self.shapes, self.capacity = tuple(dtypes), tuple(shapes), capacity
        self.seeds = (0, 0)
        self.closed = False
        self._adding: deque[Attempt] = deque()
        self._taking: deque[Attempt] = deque()
        self._lock = new_lock()

    def __len__(self) -> int:
        return len(self.store)

    def debug_string(self) -> str:
        """Return kind, size and state."""
        return f"{self.kind}[{len(self)}]{' closed' if self.closed else ''}"

    @property
    def memory_used(self) -> int:
        """Number of bytes of one element of each known shape, times the number of elements."""
        sizes = [
            (shape.num_elements or 0) * d.numpy.itemsize for shape, d in zip(self.shapes, self.dtypes, strict=False)
        ]
        return sum(sizes) * len(self)

    # Adding

    def check_element(self, components: Sequence[Array]) -> None:
        """Check the shapes of an element.

        Raises
        ------
        InvalidArgumentError
            A component has another shape than declared.
        """
        for k, (value, shape) in enumerate(zip(components, self.shapes, strict=False)):
            check_shape(k, shape, value)

    def check_batch(self, components: Sequence[Array]) -> int:
        """Check the shapes of a batch of elements, and return their number.

        Raises
        ------
        InvalidArgumentError
            A component has another shape than declared, is a scalar, or has another size than the first.
        """
        for k, value in enumerate(components):
            if not value.ndim:
                raise InvalidArgumentError(
                    f"Component {k} is a scalar, which cannot be sliced into elements", hint="use QueueEnqueue"
                )
        size = len(components[0])
        for k, (value, shape) in enumerate(zip(components, self.shapes, strict=False)):
            check_shape(k, TensorShape((size,)) + shape, value)
        for k, value in enumerate(components):
            if len(value) != size:
                raise InvalidArgumentError(
                    f"All input tensors must have the same size in the 0th dimension. Component {k} has {len(value)}, "
                    f"and should have {size}"
                )
        return size

    def add(self, elements: Iterable[Element], done: Added, cancellation: CancellationManager | None = None) -> None:
        """Add elements, which must not change afterwards, as soon as there is room for them."""
        attempt = Attempt(self._run_add, lambda error, _: done(error), cancellation, elements=deque(elements))
        self._submit(self._adding, attempt, "Enqueue")

    def _run_add(self, attempt: Attempt) -> Outcome:
        if self.closed:
            return fail(attempt, CancelledError(f"{self.kind} '{self.name}' is closed."))
        outcome, elements = Outcome.WAITING, attempt.elements
        while elements and len(self.store) < self.capacity:
            try:
                self.store.add(elements.popleft())
            except OpError as error:
                return fail(attempt, error)
            outcome = Outcome.PROGRESS
        return outcome if elements else Outcome.COMPLETE

    # Taking

    def take(self, done: Taken, cancellation: CancellationManager | None = None) -> None:
        """Take an element as soon as there is one; `done` gets its components."""

        def finish(error: OpError | None, elements: Sequence[Element]) -> None:
            done(error, [] if error is not None else list(elements[0]))

        self._submit(self._taking, Attempt(self._run_take, finish, cancellation, 1), "Dequeue")

    def take_batch(
        self, size: int, done: Taken, cancellation: CancellationManager | None = None, *, allow_small: bool = False
    ) -> None:
        """Take elements as soon as there are enough, and pass them stacked to `done`.

        Parameters
        ----------
        size : int
            Number of elements.
        done : callable
            Called once with the error, or None, and the stacked components.
        cancellation : CancellationManager, optional
            Manager whose cancellation ends the wait with `CancelledError`.
        allow_small : bool
            True to take fewer elements from a queue that is closed.

        Raises
        ------
        InvalidArgumentError
            The shapes of elements are not declared.
        """
        if not self.shapes:
            raise InvalidArgumentError(
                f"{self.kind}'s {_BATCHED.get(self.kind, _BATCHED[''])} the components to have specified shapes."
            )
        if not size:
            done(None, self._stack([]))
            return

        def finish(error: OpError | None, elements: Sequence[Element]) -> None:
            values: list[Array] = []
            try:
                values = [] if error is not None else self._stack(elements)
            except Exception as raised:  # this may be the thread of another step
                error = raised if isinstance(raised, OpError) else ResourceExhaustedError(f"{self.kind}: {raised}")
            done(error, values)

        attempt = Attempt(self._run_take, finish, cancellation, size, allow_small=allow_small)
        self._submit(self._taking, attempt, "Dequeue")

    def _run_take(self, attempt: Attempt) -> Outcome:
        store, size = self.store, len(self.store)
        if self.closed and size < attempt.remaining:
            store.restore(attempt.elements)
            attempt.elements.clear()
            if not attempt.allow_small or not len(store):
                return fail(attempt, self._exhausted(attempt.remaining, size))
            size = attempt.remaining = len(store)
        available = size if self.closed else size - store.reserve
        count = min(available, attempt.remaining)
        if count <= 0 or (store.takes_whole and count < attempt.remaining):
            return Outcome.WAITING
        attempt.elements.extend(store.take() for _ in range(count))
        attempt.remaining -= count
        return Outcome.PROGRESS if attempt.remaining else Outcome.COMPLETE

    def _exhausted(self, requested: int, size: int) -> OpError:
        return OutOfRangeError(
            f"{self.kind} '{self.name}' is closed and has insufficient elements (requested {requested}, current size "
            f"{size})"
        )

    def _stack(self, elements: Sequence[Element]) -> list[Array]:
        return [
            stack([element[k] for element in elements], shape, dtype)
            for k, (shape, dtype) in enumerate(zip(self.shapes, self.dtypes, strict=True))
        ]

    # Closing

    def shut(self, done: Added, *, cancel_pending: bool = False) -> None:
        """Close the queue: later additions fail, and attempts to take fail when the elements are used up.

        Parameters
        ----------
        done : callable
            Called with None when the queue is closed, or with an error if it was closed before.
        cancel_pending : bool
            True to fail pending additions; by default the queue is closed when they are complete.
        """
        if not cancel_pending:
            attempt = Attempt(self._run_shut, lambda error, _: done(error), None)
            self._submit(self._adding, attempt, "Close")
            return
        with self._lock:
            self.closed = True
            cancelled = self._cancel_all(self._adding)
        finish_all(cancelled, "Enqueue operation was cancelled")
        done(None)
        self._flush()

    def _run_shut(self, attempt: Attempt) -> Outcome:
        if self.closed:
            return fail(attempt, CancelledError(f"Queue '{self.name}' is already closed."))
        self.closed = True
        return Outcome.COMPLETE

    def close(self) -> None:
        """Cancel all attempts; called when the queue is removed from its manager."""
        with self._lock:
            self.closed = True
            adding, taking = self._cancel_all(self._adding), self._cancel_all(self._taking)
        finish_all(adding, "Enqueue operation was cancelled")
        finish_all(taking, "Dequeue operation was cancelled")

    # Attempts

    def _submit(self, attempts: deque[Attempt], attempt: Attempt, action: str) -> None:
        """Queue an attempt, and complete what can be completed."""
        manager = attempt.cancellation
        with self._lock:
            is_registered = True
            if manager is not None:
                attempt.token = manager.get_cancellation_token()
                cancel = partial(self._cancel, attempts, attempt, action)
                is_registered = manager.register_callback(attempt.token, cancel)
            if is_registered:
                attempts.append(attempt)
        if is_registered:
            self._flush()
        else:
            attempt.finish(CancelledError(f"{action} operation was cancelled"), ())

    def _cancel(self, attempts: deque[Attempt], attempt: Attempt, action: str) -> None:
        with self._lock:
            if attempt not in attempts:
                return
            attempts.remove(attempt)
        attempt.finish(CancelledError(f"{action} operation was cancelled"), ())
        self._flush()

    @staticmethod
    def _cancel_all(attempts: deque[Attempt]) -> list[Attempt]:
        cancelled = list(attempts)
        attempts.clear()
        return cancelled

    def _flush(self) -> None:
        """Complete attempts until none can make progress."""
        ended: list[Attempt] = []
        with self._lock:
            while advance(self._adding, ended) | advance(self._taking, ended):
                pass
        for attempt in ended:
            end(attempt, attempt.error)
