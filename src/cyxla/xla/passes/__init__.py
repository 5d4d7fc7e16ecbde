"""Passes over HLO. Each module of a folder is one pass; its docstring shows a program before and after.

A pass is a function ``run(module) -> bool`` that changes the module in place and returns True if it changed anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from cyxla.xla.hlo import HloModule

Pass: TypeAlias = Callable[[HloModule], bool]


def run_passes(module: HloModule, passes: list[Pass] | tuple[Pass, ...]) -> bool:
    """Run passes one after the other, and return True if any changed the module."""
    changed = False
    for run in passes:
        changed |= run(module)
    return changed


__all__ = ["Pass", "run_passes"]
