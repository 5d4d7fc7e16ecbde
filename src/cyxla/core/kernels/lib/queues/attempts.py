"""Operations on a queue that wait for their turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from cyxla.core.framework.step.cancellation import CancellationManager
from cyxla.core.kernels.lib.queues.stores import Element
from cyxla.errors import CancelledError, OpError


class Outcome(Enum):
    """Result of one run of an attempt."""

    WAITING = 0  # no progress
    PROGRESS = 1
    COMPLETE = 2


@dataclass(eq=False, slots=True)
class Attempt:
    """An operation that waits for its turn.

    Attributes
    ----------
    run : callable
        Makes as much progress as possible; called under the lock of the queue.
    finish : callable
        Called once, without the lock, with the error or None, and the elements.
    remaining : int
        Number of elements that are still to be taken.
    elements : deque of Element
        Elements that are still to be added, or were taken so far.
    """

    run: Callable[[Attempt], Outcome]
    finish: Callable[[OpError | None, Sequence[Element]], object]
    cancellation: CancellationManager | None
    remaining: int = 0
    elements: deque[Element] = field(default_factory=deque)
    allow_small: bool = False
    token: int = -1
    error: OpError | None = None


def advance(attempts: deque[Attempt], ended: list[Attempt]) -> bool:
    """Run attempts in their order until one waits; return True if any made progress."""
    changed = False
    while attempts:
        outcome = attempts[0].run(attempts[0])
        if outcome is not Outcome.COMPLETE:
            return changed or outcome is Outcome.PROGRESS
        ended.append(attempts.popleft())
        changed = True
    return changed


def fail(attempt: Attempt, error: OpError) -> Outcome:
    """Complete an attempt with an error."""
    attempt.error = error
    return Outcome.COMPLETE


def end(attempt: Attempt, error: OpError | None) -> None:
    """Call the callback of an attempt that is no longer in its queue."""
    # Without waiting for a cancellation that has begun: it no longer finds the attempt in the queue
    if attempt.cancellation is not None:
        attempt.cancellation.try_deregister_callback(attempt.token)
    attempt.finish(error, attempt.elements)


def finish_all(attempts: Iterable[Attempt], message: str) -> None:
    """Cancel attempts that are no longer in their queue."""
    for attempt in attempts:
        end(attempt, CancelledError(message))
