"""Indices of prebuilt functions in the table ``cyx_prebuilt``, for the processor level of this process."""

from __future__ import annotations

from cyxla import config
from cyxla._native import kernels as library
from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.c.target import for_library, isa_level


def suffix() -> str | None:
    """Return the name suffix of functions for this process's processor level; None if none is to be called."""
    if for_library() or config.get("SANITIZE") or not config.get("PREBUILT"):
        return None
    return Level(Level(isa_level()).prebuilt).suffix


def number(name: str) -> int | None:
    """Return the table index of a function for this process's level; None if generated code defines its own."""
    ending = suffix()
    return None if ending is None else library.numbers.get(name + ending)
