"""Passes that rewrite graphs before they run, by group and phase.

========================== ==============================================================
group                      the graph
========================== ==============================================================
``PRE_PLACEMENT``          the session's whole graph
``POST_PLACEMENT``         the same, every node assigned to a device
``POST_REWRITE_FOR_EXEC``  what one run needs, with ``_Arg`` and ``_Retval`` nodes
``POST_PARTITIONING``      the part of that on one device, with ``_Send`` and ``_Recv``
``COMPOSITION``            the same for the executor alone: several nodes may become one
========================== ==============================================================

Groups run in this order, the passes of a group by ascending phase, those of a phase as they were registered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cyxla.core.graph.graph import Graph
from cyxla.errors import OpError
from cyxla.forking import new_lock

if TYPE_CHECKING:
    from cyxla.core.runtime.engine import Engine

_BUILT_IN = ("constant_folding", "common_subgraph")


class Grouping(IntEnum):
    """When a pass runs."""

    PRE_PLACEMENT = 0
    POST_PLACEMENT = 1
    POST_REWRITE_FOR_EXEC = 2
    POST_PARTITIONING = 3
    COMPOSITION = 4


@dataclass
class OptimizationPassOptions:
    """What a pass gets.

    Parameters
    ----------
    graph : Graph
        Changed in place, or replaced: the next pass sees what ``graph`` is then.
    engine : Engine
        Its devices, kernels and functions.
    device : str
        After partitioning, the full name of the part's device.
    settings : dict
        What the session was told about passes.
    """

    graph: Graph
    engine: Engine
    device: str = ""
    settings: dict[str, Any] = field(default_factory=dict)


Pass = Callable[[OptimizationPassOptions], object]


@dataclass(frozen=True)
class PassEntry:
    """A registered pass."""

    grouping: Grouping
    phase: int
    name: str
    run: Pass


class OptimizationPassRegistry:
    """Passes by group and phase. Safe for any number of threads."""

    def __init__(self) -> None:
        self._entries: list[PassEntry] = []
        self._lock = new_lock()

    @staticmethod
    @lru_cache(maxsize=1)
    def global_() -> OptimizationPassRegistry:
        """The registry of the process, with the passes that cyxla comes with."""
        registry = OptimizationPassRegistry()
        for name in _BUILT_IN:
            import_module(f"cyxla.core.runtime.{name}").register(registry)
        return registry

    def register(self, grouping: Grouping, phase: int, run: Pass, name: str = "") -> None:
        """Add a pass: any callable that takes `OptimizationPassOptions`."""
        entry = PassEntry(Grouping(grouping), phase, name or getattr(run, "__name__", type(run).__name__), run)
        with self._lock:
            self._entries = sorted([*self._entries, entry], key=lambda e: (e.grouping, e.phase))

    def unregister(self, name: str) -> None:
        """Forget the passes of a name."""
        with self._lock:
            self._entries = [entry for entry in self._entries if entry.name != name]

    def passes(self, grouping: Grouping | None = None) -> list[PassEntry]:
        """All passes, or those of a group, in the order in which they run."""
        with self._lock:
            return [entry for entry in self._entries if grouping is None or entry.grouping == grouping]

    def run(self, grouping: Grouping, options: OptimizationPassOptions) -> Graph:
        """Run the passes of a group.

        Returns
        -------
        Graph
            What they made of ``options.graph``.

        Raises
        ------
        OpError
            What a pass raised, with its name.
        """
        for entry in self.passes(grouping):
            try:
                entry.run(options)
            except OpError as error:
                error.where = error.where or f"pass '{entry.name}' ({grouping.name}, phase {entry.phase})"
                raise
        return options.graph


def register_pass(
    grouping: Grouping, phase: int, run: Pass, name: str = "", registry: OptimizationPassRegistry | None = None
) -> None:
    """Register a pass that rewrites graphs; in the global registry by default."""
    (registry or OptimizationPassRegistry.global_()).register(grouping, phase, run, name)
