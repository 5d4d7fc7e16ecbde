"""Processor that C is written and compiled for: this one, or that of a library built ahead of time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from cyxla import config, errors
from cyxla._native import _rt
from cyxla.xla.cpu.c.isa_levels import ISA_FEATURES

_library_level: ContextVar[str | None] = ContextVar("library_level", default=None)


def isa_level() -> str:
    """Return the level to compile for: that of the library, or CYXLA_ISA, else that of this processor.

    It is "" for processors other than x86-64.
    """
    of_library = _library_level.get()
    if of_library is not None:
        return of_library
    detected = _rt.isa_level()
    level = config.get("ISA") or detected
    levels = list(ISA_FEATURES)
    if level == detected or (level in levels and detected in levels and levels.index(level) < levels.index(detected)):
        return level
    raise errors.InvalidArgumentError(
        f"CYXLA_ISA={level} is not a level of this processor ({detected or 'not x86-64'}); known levels are {levels}"
    )


def for_library() -> bool:
    """Return whether the C is for a library of its own, which has no prebuilt functions and runs on any machine."""
    return _library_level.get() is not None


@contextmanager
def writing_library(level: str | None) -> Iterator[None]:
    """Write C for a library of its own and a processor level, whatever this processor is; None for this process."""
    token = _library_level.set(level)
    try:
        yield
    finally:
        _library_level.reset(token)
