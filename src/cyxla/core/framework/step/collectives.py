"""Operations to which every device of a group contributes a value."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Timer
from typing import Any

import numpy as np

from cyxla.core.framework.step.cancellation import CancellationManager
from cyxla.errors import CancelledError, DeadlineExceededError, InternalError, InvalidArgumentError, OpError
from cyxla.forking import new_lock

Array = np.ndarray[Any, Any]
Combined = Callable[["OpError | None", Any], object]
"""Called with the error or None, and the combined value."""


_CANCELLED = (CancelledError, "the collective operation was cancelled")
_TIMED_OUT = (DeadlineExceededError, "Collective has timed out waiting for other workers.")


@dataclass(eq=False, slots=True)
class _Member:
    value: Array
    done: Combined
    cancellation: CancellationManager | None
    token: int = -1
    timer: Timer | None = None


@dataclass(slots=True)
class _Instance:
    """One operation of a group that waits for its members."""

    size: int
    members: dict[str, _Member] = field(default_factory=dict)


class CollectiveExecutor:
    """Table of the operations of a step that wait for members of their groups."""

    def __init__(self) -> None:
        self._instances: dict[Hashable, _Instance] = {}
        self._lock = new_lock()

    def combine_async(
        self,
        key: Hashable,
        size: int,
        device: str,
        value: Array,
        combine: Callable[[Sequence[Array]], Array],
        done: Combined,
        cancellation: CancellationManager | None = None,
        timeout: float = 0.0,
    ) -> None:
        """Contribute a value; the last member of the group combines all values, and calls the callbacks of all.

        Parameters
        ----------
        key : hashable
            Group and instance of the operation.
        size : int
            Number of members of the group.
        device : str
            Device of this member; values are combined in the order of their devices.
        value : ndarray
            Value of this member.
        combine : callable
            Function of the values of all members.
        done : callable
            Callback, called once with the error or None, and the result.
        cancellation : CancellationManager, optional
            Manager whose cancellation ends the wait with `CancelledError`.
        timeout : float
            Seconds after which the wait ends with `DeadlineExceededError`; 0 for no limit.

        Raises
        ------
        InvalidArgumentError
            The sizes or shapes of members differ.
        InternalError
            A device contributes twice.
        """
        member = _Member(value, done, cancellation)
        with self._lock:
            instance = self._instances.setdefault(key, _Instance(size))
            self._check(instance, size, device, value)
            if cancellation is not None:
                member.token = cancellation.get_cancellation_token()
                if not cancellation.register_callback(member.token, partial(self._fail, key, device, _CANCELLED)):
                    raise CancelledError(_CANCELLED[1])
            instance.members[device] = member
            is_complete = len(instance.members) == size
            if is_complete:
                del self._instances[key]
        if is_complete:
            _finish(instance, combine)
        elif timeout > 0:
            member.timer = Timer(timeout, partial(self._fail, key, device, _TIMED_OUT))
            member.timer.daemon = True
            member.timer.start()

    @staticmethod
    def _check(instance: _Instance, size: int, device: str, value: Array) -> None:
        if instance.size != size:
            raise InvalidArgumentError(
                f"{device} is joining a group with size {size}, but that group has size {instance.size}"
            )
        if device in instance.members:
            raise InternalError(f"{device} contributes twice to one collective operation")
        for other, member in instance.members.items():
            if member.value.shape != value.shape or member.value.dtype != value.dtype:
                raise InvalidArgumentError(
                    f"members of a group differ: {other} contributes {member.value.dtype}{list(member.value.shape)}, "
                    f"{device} {value.dtype}{list(value.shape)}"
                )

    def _fail(self, key: Hashable, device: str, failure: tuple[type[OpError], str]) -> None:
        with self._lock:
            instance = self._instances.get(key)
            member = None if instance is None else instance.members.pop(device, None)
        if member is not None:
            _release(member)
            member.done(failure[0](failure[1]), None)


def _finish(instance: _Instance, combine: Callable[[Sequence[Array]], Array]) -> None:
    error, result = None, None
    try:
        result = combine([instance.members[device].value for device in sorted(instance.members)])
    except OpError as raised:
        error = raised
    for member in instance.members.values():
        _release(member)
        member.done(error, None if result is None else result.copy())


def _release(member: _Member) -> None:
    """End the limits of a wait."""
    if member.cancellation is not None:
        member.cancellation.try_deregister_callback(member.token)
    if member.timer is not None:
        member.timer.cancel()
