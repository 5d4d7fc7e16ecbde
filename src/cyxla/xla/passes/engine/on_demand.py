"""Passes that are imported, and run, for modules with the opcodes that they rewrite only."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cyxla.xla.hlo import HloModule


class OnDemand:
    """Pass by the name of its module: most programs have none of its opcodes.

    Parameters
    ----------
    module : str
        Module of the pass below ``cyxla.xla.passes``, such as "expand.scan".
    *opcodes : str
        Opcodes that it rewrites; without them in a module, it changes nothing.
    """

    def __init__(self, module: str, *opcodes: str) -> None:
        self.module, self.opcodes = f"cyxla.xla.passes.{module}", frozenset(opcodes)

    def __call__(self, module: HloModule) -> bool:
        """Run the pass if the module has one of its opcodes; return whether it changed anything."""
        return self.occurs_in(module) and self.load().run(module) is True

    def occurs_in(self, module: HloModule) -> bool:
        """Return whether a module has one of the opcodes."""
        return any(
            ins.opcode in self.opcodes for computation in module.post_order() for ins in computation.instructions
        )

    def load(self) -> Any:
        """Import the module of the pass."""
        return import_module(self.module)

    def __repr__(self) -> str:
        return f"OnDemand({self.module})"
