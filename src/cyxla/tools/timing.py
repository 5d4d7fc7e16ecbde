"""Timing of calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def best_of(call: Callable[[], Any], repeat: int, before: Callable[[], object] | None = None) -> tuple[Any, float]:
    """Call a function several times, and return its last result and the shortest time in seconds.

    `before` is called before each call, outside of the time.
    """
    best, result = float("inf"), None
    for _ in range(max(repeat, 1)):
        if before is not None:
            before()
        started = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - started)
    return result, best
