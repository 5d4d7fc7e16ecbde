"""Exception handlers of the user's program around an operation that is being traced."""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.trace import is_internal

REWRITTEN: Final = "_cyxla"  # what handlers in rewritten code read first


def is_in_try_block(*, with_statements: bool = True) -> bool:
    """Return True if a ``try`` statement of the user's program, or a ``with`` statement, is being executed."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "lower" and is_internal(code.co_filename):
            return False
        if not is_internal(code.co_filename) and _is_covered(code, frame.f_lasti, with_statements):
            return True
        frame = frame.f_back
    return False


def _is_covered(code: CodeType, offset: int, with_statements: bool) -> bool:
    """Return True if exceptions are handled by the user's program, in the handlers of rewritten code or around them."""
    seen: set[int] = set()
    while True:
        block = next((b for b in _blocks(code) if b.start <= offset < b.end), None)
        if block is None or block.target in seen:
            return False
        if block.is_try or (block.is_with and with_statements):
            return True
        seen.add(block.target)
        offset = block.target


class _Block(NamedTuple):
    """Range of bytecode whose exceptions are handled."""

    start: int
    end: int
    target: int
    is_try: bool
    is_with: bool


@lru_cache(maxsize=1024)
def _blocks(code: CodeType) -> tuple[_Block, ...]:
    """Return the ranges of bytecode whose exceptions are caught."""
    parse: Any = dis._parse_exception_table  # type: ignore[attr-defined]
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG", "NOP")]
    places = {i.offset: k for k, i in enumerate(instructions)}
    made = []
    for entry in parse(code):
        k = places.get(entry.target, -1)
        first, second = (instructions[k : k + 2] if k >= 0 else (None, None)) or (None, None)
        handles = first is not None and first.opname == "PUSH_EXC_INFO"
        is_with = handles and second is not None and second.opname in ("WITH_EXCEPT_START",)
        is_ours = handles and second is not None and str(second.argval) == REWRITTEN
        made.append(_Block(entry.start, entry.end, entry.target, handles and not is_with and not is_ours, is_with))
    return tuple(made)


hooks.is_in_try_block = is_in_try_block
