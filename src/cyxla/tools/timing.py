"""Timing of calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def best_of(call: Callable[[], Any], repeat: int) -> tuple[Any, float]:
    """Call a function several times, and return its result and the shortest time in seconds."""
    best, result = float("inf"), None
    for _ in range(max(repeat, 1)):
        started = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - started)
    return result, best
