"""How long calls take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def best_of(call: Callable[[], Any], repeat: int) -> tuple[Any, float]:
    """The result of a call, and the shortest of several times."""
    best, result = float("inf"), None
    for _ in range(max(repeat, 1)):
        started = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - started)
    return result, best
