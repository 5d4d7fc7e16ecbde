"""Numbers of the prebuilt functions that may be called in this process."""

from __future__ import annotations

from cyxla import config
from cyxla._native import kernels as library
from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.c.target import isa_level


def suffix() -> str | None:
    """How the names of functions for this process's processor level end; None where none is to be called."""
    if config.get("SANITIZE") or not config.get("PREBUILT"):
        return None
    return Level(Level(isa_level()).prebuilt).suffix


def number(name: str) -> int | None:
    """The number of a function for this process's processor level; None where generated code brings its own."""
    ending = suffix()
    return None if ending is None else library.numbers.get(name + ending)
