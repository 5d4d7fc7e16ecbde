"""Barriers: elements whose components arrive at different times, each under the key of its element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.resource_mgr import ResourceBase
from cyxla.core.framework.step.cancellation import CancellationManager
from cyxla.core.framework.tensor_shape import SCALAR, TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.kernels.lib.queues.queue import Added, Queue, Taken
from cyxla.core.kernels.lib.queues.stores import Element, PriorityStore
from cyxla.errors import CancelledError, InternalError, InvalidArgumentError, OpError, OutOfRangeError
from cyxla.forking import new_lock

Array = np.ndarray[Any, Any]
_FIRST_INDEX, _LAST_INDEX = -(1 << 63), (1 << 63) - 1


class Barrier(ResourceBase):
    """Collection of elements by key; those with all components are taken in the order of their first component.

    Parameters
    ----------
    name : str
        Name of the barrier.
    dtypes : sequence of DataType
        Types of the components.
    shapes : sequence of TensorShape
        Shapes of the components.
    """

    def __init__(self, name: str, dtypes: Sequence[DataType], shapes: Sequence[TensorShape]) -> None:
        self.name, self.dtypes, self.shapes = name, tuple(dtypes), tuple(shapes)
        queue_types = (DataType.DT_INT64, DataType.DT_STRING, *dtypes)
        self.ready = Queue("PriorityQueue", f"{name}_queue", PriorityStore(), queue_types, (SCALAR, SCALAR, *shapes))
        self._incomplete: dict[bytes, list[Array | None]] = {}
        self._next_index = _FIRST_INDEX
        self._closed = self._cancelled = False
        self._lock = new_lock()

    def debug_string(self) -> str:
        """Return the numbers of ready and of incomplete elements."""
        return f"Barrier[{self.ready_size} ready, {self.incomplete_size} incomplete]"

    @property
    def ready_size(self) -> int:
        """Number of complete elements."""
        return len(self.ready)

    @property
    def incomplete_size(self) -> int:
        """Number of incomplete elements."""
        return len(self._incomplete)

    def insert(self, keys: Sequence[bytes], component: int, values: Array, done: Added) -> None:
        """Set a component of the elements of some keys, one row of the values for each.

        Raises
        ------
        InvalidArgumentError
            A key already has a value of the component, or a value has the wrong shape.
        CancelledError
            The barrier is closed, and takes no new keys or, if closed with cancellation, no values at all.
        """
        if len(keys) and not values.size:
            shape = TensorShape(values.shape)
            raise InvalidArgumentError(
                f"Tensors with no elements are not supported {self.name}: received shape {shape}"
            )
        ready: list[Element] = []
        with self._lock:
            self._check_open(len(keys))
            try:
                self._insert_all(keys, component, values, ready)
            finally:
                self.ready.add(ready, _ignore)  # its capacity is unlimited: it never waits
            is_last = self._closed and not self._incomplete
        if is_last and not self.ready.closed:
            self.ready.shut(_ignore)
        done(None)

    def _check_open(self, count: int) -> None:
        if self._closed and (self._cancelled or (count and not self._incomplete)):
            raise CancelledError(
                f"Barrier {self.name} is closed.  Pending enqueues cancelled: {int(self._cancelled)}.  Number of new "
                f"insertions: {count}.  Number of incomplete keys: {len(self._incomplete)}."
            )

    def _insert_all(self, keys: Sequence[bytes], component: int, values: Array, ready: list[Element]) -> None:
        has_new_keys = False
        for row, key in enumerate(keys):
            parts = self._incomplete.get(key)
            if parts is None:
                self._check_new_key(key, row)
                parts = self._incomplete[key] = [np.array(self._next_index), *[None] * len(self.dtypes)]
                has_new_keys = True
            if parts[1 + component] is not None:
                raise InvalidArgumentError(
                    f"Key {_text(key)} already has a value for component {component} in barrier {self.name}"
                )
            parts[1 + component] = values[row, ...].copy()
            if all(part is not None for part in parts):
                del self._incomplete[key]
                self._complete(key, parts, ready)
        if has_new_keys:
            self._next_index += 1
        if self._next_index == _LAST_INDEX:
            raise InternalError(f"barrier {self.name} can no longer number new keys")

    def _check_new_key(self, key: bytes, row: int) -> None:
        if self._closed:
            raise CancelledError(
                f"Barrier {self.name} is closed, but attempted to insert a brand new key: {_text(key)}.  Pending "
                f"enqueues cancelled: {int(self._cancelled)}.  Insertion index: {row}.  Number of incomplete keys: "
                f"{len(self._incomplete)}."
            )

    def _complete(self, key: bytes, parts: list[Array | None], ready: list[Element]) -> None:
        index, *values = (part for part in parts if part is not None)
        name = np.empty((), np.object_)
        name[()] = key
        element = (index, name, *values)
        self.ready.check_element(element)
        ready.append(element)

    def take(
        self, size: int, done: Taken, cancellation: CancellationManager | None = None, *, allow_small: bool = False
    ) -> None:
        """Take complete elements as soon as there are enough; `done` gets their indices, keys and stacked components.

        Raises
        ------
        OutOfRangeError
            The barrier is closed, and there will not be enough elements.
        """
        requested = size
        with self._lock:
            if self._closed:
                available = self.ready_size
                if allow_small:
                    requested = min(size, available)
                else:
                    available += self.incomplete_size
                if available < max(requested, 1):
                    raise OutOfRangeError(
                        f"Barrier '{self.name}' is closed and has insufficient elements (requested {requested}, total "
                        f"size {available})"
                    )
        self.ready.take_batch(requested, done, cancellation, allow_small=allow_small)

    def shut(self, done: Added, *, cancel_pending: bool = False) -> None:
        """Close the barrier for new keys, or with `cancel_pending` for all values; incomplete elements are then lost.

        Raises
        ------
        CancelledError
            The barrier is already closed.
        """
        with self._lock:
            if self._closed and (self._cancelled or not cancel_pending):
                raise CancelledError(f"Barrier '{self.name}' is already closed.")
            self._closed, self._cancelled = True, cancel_pending
            if cancel_pending:
                self._incomplete.clear()
            closes_queue = not self._incomplete and not self.ready.closed
        if closes_queue:
            self.ready.shut(done, cancel_pending=cancel_pending)
        else:
            done(None)

    def close(self) -> None:
        """Cancel waiting steps; called when the barrier is removed from its manager."""
        self.ready.close()


def _ignore(error: OpError | None) -> None:
    """Ignore the result of an operation that cannot fail."""


def _text(key: bytes) -> str:
    return key.decode("utf-8", "surrogateescape")
