"""Exception handlers of the user's program around an operation that is being traced."""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.trace import is_internal


def is_in_try_block() -> bool:
    """Return True if a ``try`` or ``with`` statement of the user's program is being executed."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "lower" and is_internal(code.co_filename):
            return False
        if not is_internal(code.co_filename) and _is_covered(code, frame.f_lasti):
            return True
        frame = frame.f_back
    return False


def _is_covered(code: CodeType, offset: int) -> bool:
    return any(start <= offset < end for start, end in _blocks(code))


@lru_cache(maxsize=1024)
def _blocks(code: CodeType) -> tuple[tuple[int, int], ...]:
    """Return the ranges of bytecode whose exceptions are caught."""
    parse: Any = dis._parse_exception_table  # type: ignore[attr-defined]
    return tuple((entry.start, entry.end) for entry in parse(code))


hooks.is_in_try_block = is_in_try_block
