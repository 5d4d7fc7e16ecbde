"""Prebuilt compaction by a mask, of arrays of any types, and of indices."""

from __future__ import annotations

from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.compaction.templates import compact_text
from cyxla.xla.cpu.prebuilt.library import KERNEL

FUNCTIONS = {"compact": KERNEL}


def text(_: Level) -> str:
    """Return the C of the function, which is the same for every level."""
    call = "return compact_run(CYX_NUMBERS(bufs), bufs, begin, end);"
    return compact_text("compact") + f"{KERNEL[0]} CYX_PREBUILT(compact)({KERNEL[1]}) {{ {call} }}\n"
