"""Instruction-set level that C is written and compiled for."""

from __future__ import annotations

from cyxla import config, errors
from cyxla._native import _rt
from cyxla.xla.cpu.c.isa_levels import ISA_FEATURES


def isa_level() -> str:
    """Return the level to compile for: CYXLA_ISA, else that of this processor ('' on processors other than x86-64)."""
    detected = _rt.isa_level()
    level = config.get("ISA") or detected
    levels = list(ISA_FEATURES)
    if level == detected or (level in levels and detected in levels and levels.index(level) < levels.index(detected)):
        return level
    raise errors.InvalidArgumentError(
        f"CYXLA_ISA={level} is not a level of this processor ({detected or 'not x86-64'}); known levels are {levels}"
    )
