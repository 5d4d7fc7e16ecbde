"""Transfers between running programs and the host: infeed, outfeed, and channels of send and recv."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from cyxla._native import arguments
from cyxla.errors import (
    AlreadyExistsError,
    DeadlineExceededError,
    InvalidArgumentError,
    ShapeError,
    UnimplementedError,
)
from cyxla.forking import new_condition
from cyxla.memory import require

if TYPE_CHECKING:
    from cyxla.types import Shape

SendHandler: TypeAlias = Callable[[Any], object]
RecvHandler: TypeAlias = "Callable[[Shape], Any]"

DEFAULT_TIMEOUT: Final = 60.0  # seconds

_INFEED, _OUTFEED = "the infeed queue", "the outfeed queue"


class Feeds:
    """Queues of values between running programs and the host, and handlers of host transfers.

    Each executable has one of its own, `Executable.feeds`, unless it was compiled with the option `feeds`; programs
    with the same one share its queues, as programs of one device do in XLA. All methods may be called from any thread.
    The values are copies: arrays, and tuples of them.

    Parameters
    ----------
    timeout : float
        Seconds that a program or the host waits for the other before it raises `DeadlineExceededError`; ``math.inf``
        waits without limit. Ctrl-C ends every wait of the main thread.
    capacity : int, optional
        Number of values that each queue holds; whoever adds one more waits until one is taken. The default has no
        limit but memory.

    Examples
    --------
    >>> import numpy as np
    >>> from cyxla import compile
    >>> double = compile('''
    ... ENTRY e {
    ...   t = token[] after-all()
    ...   in = (f32[2], token[]) infeed(t)
    ...   x = f32[2] get-tuple-element(in), index=0
    ...   next = token[] get-tuple-element(in), index=1
    ...   y = f32[2] add(x, x)
    ...   ROOT out = token[] outfeed(y, next)
    ... }''', platform="interpreter")
    >>> double.infeed([1, 2])
    >>> double()
    token
    >>> double.outfeed()
    array([2., 4.], dtype=float32)
    """

    def __init__(self, *, timeout: float = DEFAULT_TIMEOUT, capacity: int | None = None) -> None:
        if not timeout >= 0:
            raise InvalidArgumentError(f"timeout is {timeout!r}, but must be a number of seconds")
        if capacity is not None and capacity < 1:
            raise InvalidArgumentError(f"capacity is {capacity!r}, but a queue holds at least 1 value")
        self.timeout, self.capacity = timeout, capacity
        self._queues: dict[str, deque[Any]] = {}
        self._changed = new_condition()
        self._send_handlers: dict[int, SendHandler] = {}
        self._recv_handlers: dict[int, RecvHandler] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle has the limits alone: queues and handlers belong to a process."""
        return _make, (self.timeout, self.capacity)

    def __repr__(self) -> str:
        with self._changed:
            held = ", ".join(f"{name.removeprefix('the ')}: {len(q)}" for name, q in self._queues.items() if q)
        return f"<Feeds {held or 'empty'}>"

    # --- the host ---

    def infeed(self, value: Any, *, timeout: float | None = None) -> None:
        """Queue a value for the next `infeed` of a program.

        `Executable.infeed` also checks it against the program, and converts Python numbers.

        Parameters
        ----------
        value : array_like, or nested tuple of them
            Value of the shape that the program takes; it is copied.
        timeout : float, optional
            Seconds to wait for room in the queue; by default those of the constructor.

        Raises
        ------
        InvalidArgumentError
            The value is no array.
        DeadlineExceededError
            The queue stayed full.
        """
        self._put(_INFEED, _copy(value, "infeed"), timeout)

    def outfeed(self, *, timeout: float | None = None) -> Any:
        """Take the next value that a program sent by `outfeed`, and wait until there is one.

        Raises
        ------
        DeadlineExceededError
            No program sent a value in time.
        """
        return self._take(_OUTFEED, timeout, "no program sent a value")

    @property
    def num_infeeds(self) -> int:
        """Number of values that wait in the infeed queue."""
        return self._length(_INFEED)

    @property
    def num_outfeeds(self) -> int:
        """Number of values that wait in the outfeed queue."""
        return self._length(_OUTFEED)

    def _length(self, name: str) -> int:
        with self._changed:
            return len(self._queues.get(name, ()))

    def send(self, channel: int, value: Any, *, timeout: float | None = None) -> None:
        """Queue a value for the next `recv` of a program from the host, on a channel without a handler."""
        self._put(_from_host(channel), _copy(value, f"channel {channel}"), timeout)

    def recv(self, channel: int, *, timeout: float | None = None) -> Any:
        """Take the next value that a program sent to the host, on a channel without a handler."""
        return self._take(_to_host(channel), timeout, "no program sent a value")

    def on_send(self, channel: int, handler: SendHandler) -> None:
        """Register a function that is called with each value that a program sends to the host on a channel.

        The program waits until it returns; an exception ends the program and reaches its caller.

        Raises
        ------
        AlreadyExistsError
            The channel has a handler.
        """
        self._register(self._send_handlers, channel, handler)

    def on_recv(self, channel: int, handler: RecvHandler) -> None:
        """Register a function that returns the values which a program receives from the host on a channel.

        It is called with the `Shape` that the program expects. An exception ends the program and reaches its caller.

        Raises
        ------
        AlreadyExistsError
            The channel has a handler.
        """
        self._register(self._recv_handlers, channel, handler)

    def clear(self) -> None:
        """Drop all values in the queues, such as those left by a program that failed."""
        with self._changed:
            self._queues.clear()
            self._changed.notify_all()

    # --- programs ---

    def take_infeed(self, shape: Shape) -> Any:
        """Return the next value for an `infeed` of a program.

        Raises
        ------
        InvalidArgumentError
            The value does not have the shape.
        DeadlineExceededError
            The host queued no value in time.
        """
        value = self._take(_INFEED, None, "the host queued no value", "call infeed(value) of the executable")
        return conform(value, shape, "infeed")

    def put_outfeed(self, value: Any) -> None:
        """Queue a value of a program's `outfeed` for the host; the caller gives up its arrays."""
        self._put(_OUTFEED, value, None)

    def program_send(self, channel: int, value: Any, *, to_host: bool) -> None:
        """Give a value that a program sends to the handler of the channel, or queue it."""
        handler = self._send_handlers.get(channel) if to_host else None
        if handler is not None:
            handler(value)
        else:
            self._put(_to_host(channel) if to_host else _between(channel), value, None)

    def program_recv(self, channel: int, shape: Shape, *, from_host: bool) -> Any:
        """Return the next value of a channel for a program.

        Raises
        ------
        InvalidArgumentError
            The value does not have the shape.
        DeadlineExceededError
            Nobody sent a value in time.
        """
        handler = self._recv_handlers.get(channel) if from_host else None
        if handler is not None:
            value = handler(shape)
        elif from_host:
            hint = f"call feeds.send({channel}, value), or register a handler by feeds.on_recv"
            value = self._take(_from_host(channel), None, "the host sent no value", hint)
        else:
            hint = "compile the program that sends with the same feeds, and run it on another thread, or before"
            value = self._take(_between(channel), None, "no program sent a value", hint)
        return conform(value, shape, f"channel {channel}")

    # --- queues ---

    def _register(self, handlers: dict[int, Any], channel: int, handler: Any) -> None:
        if not callable(handler):
            raise InvalidArgumentError(f"the handler of channel {channel} is a {type(handler).__name__}, no function")
        with self._changed:
            if channel in handlers:
                raise AlreadyExistsError(f"channel {channel} has a handler already")
            handlers[channel] = handler

    def _put(self, name: str, value: Any, timeout: float | None) -> None:
        with self._changed:
            self._wait(lambda: self._has_room(name), name, timeout, f"it holds {self.capacity} values already")
            self._queues.setdefault(name, deque()).append(value)
            self._changed.notify_all()

    def _has_room(self, name: str) -> bool:
        return self.capacity is None or len(self._queues.get(name, ())) < self.capacity

    def _take(self, name: str, timeout: float | None, why: str, hint: str = "") -> Any:
        with self._changed:
            self._wait(lambda: self._queues.get(name), name, timeout, why, hint)
            value = self._queues[name].popleft()
            self._changed.notify_all()
            return value

    def _wait(self, ready: Callable[[], Any], name: str, timeout: float | None, why: str, hint: str = "") -> None:
        limit = self.timeout if timeout is None else timeout
        end = time.monotonic() + limit
        while not ready():
            left = end - time.monotonic()
            if left <= 0:
                raise DeadlineExceededError(
                    f"waited {limit:g} s for {name}: {why}", hint=hint or "Feeds(timeout=...) sets the limit"
                )
            self._changed.wait(None if left == inf else left)


def _make(timeout: float, capacity: int | None) -> Feeds:
    return Feeds(timeout=timeout, capacity=capacity)


def _to_host(channel: int) -> str:
    return f"channel {channel} to the host"


def _from_host(channel: int) -> str:
    return f"channel {channel} from the host"


def _between(channel: int) -> str:
    return f"channel {channel}"


def _copy(value: Any, where: str) -> Any:
    """Return a copy of the arrays of a value."""
    if isinstance(value, tuple):
        return tuple([_copy(v, f"{where}[{k}]") for k, v in enumerate(value)])
    arguments.require_values_alone(value, where)
    try:
        array = np.array(value)
    except ValueError as error:  # a ragged list
        raise InvalidArgumentError(f"{where}: got {arguments.describe(value)}: {error}") from error
    if array.dtype == object:
        raise InvalidArgumentError(f"{where}: got {arguments.describe(value)}, want an array")
    return array


def conform(value: Any, shape: Shape, where: str) -> Any:
    """Return a value with the types of a shape: Python numbers are converted, arrays must have them.

    Raises
    ------
    InvalidArgumentError
        The value does not have the shape; the message names the part and both types.
    """
    if shape.is_tuple:
        if not isinstance(value, (tuple, list)) or len(value) != len(shape.elements):
            raise InvalidArgumentError(f"{where}: got {_describe(value)}, want {shape}")
        parts = zip(value, shape.elements, strict=True)
        return tuple([conform(v, s, f"{where}[{k}]") for k, (v, s) in enumerate(parts)])
    if shape.dtype.numpy_dtype is None:
        raise UnimplementedError(f"{where}: {shape} cannot be transferred")
    dims = shape.dims
    if shape.is_dynamic:
        dims = np.shape(value)
        parts_fit = (n == b or (d and n < b) for n, b, d in zip(dims, shape.dims, shape.dynamic, strict=False))
        if len(dims) != shape.rank or not all(parts_fit):
            raise ShapeError(f"{where}: got {arguments.describe(value)}, want {shape}")
    require(shape.nbytes)
    return arguments.convert(value, shape.dtype.numpy_dtype, dims, where)


def _describe(value: Any) -> str:
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else arguments.describe(value)
