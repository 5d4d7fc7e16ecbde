"""The registry of passes that rewrite graphs before they run, by group and phase.

========================== ==============================================================
group                      the graph
========================== ==============================================================
``PRE_PLACEMENT``          the session's whole graph
``POST_PLACEMENT``         the same graph, with every node assigned to a device
``POST_REWRITE_FOR_EXEC``  the pruned graph of a run, with ``_Arg`` and ``_Retval`` nodes
``POST_PARTITIONING``      its partition on one device, with ``_Send`` and ``_Recv``
``COMPOSITION``            the same partition, for the executor only: nodes may be combined
========================== ==============================================================

Groups run in this order, the passes of a group by ascending phase, those of a phase in the order of registration.
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

_BUILT_IN = ("tree_aggregation", "constant_folding", "common_subgraph")


class Grouping(IntEnum):
    """Group of a pass, which determines when it runs."""

    PRE_PLACEMENT = 0
    POST_PLACEMENT = 1
    POST_REWRITE_FOR_EXEC = 2
    POST_PARTITIONING = 3
    COMPOSITION = 4


@dataclass
class OptimizationPassOptions:
    """Argument of a pass.

    Parameters
    ----------
    graph : Graph
        Graph, which a pass modifies in place or replaces.
    engine : Engine
        Engine with devices, kernels and functions.
    device : str
        Full name of the partition's device, after partitioning.
    settings : dict
        Settings of the session for passes.
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
    """Registry of passes by group and phase. Safe for any number of threads."""

    def __init__(self) -> None:
        self._entries: list[PassEntry] = []
        self._lock = new_lock()

    @staticmethod
    @lru_cache(maxsize=1)
    def global_() -> OptimizationPassRegistry:
        """Return the registry of the process, with the built-in passes."""
        registry = OptimizationPassRegistry()
        for name in _BUILT_IN:
            import_module(f"cyxla.core.runtime.{name}").register(registry)
        return registry

    def register(self, grouping: Grouping, phase: int, run: Pass, name: str = "") -> None:
        """Register a pass, which is a callable that takes `OptimizationPassOptions`."""
        entry = PassEntry(Grouping(grouping), phase, name or getattr(run, "__name__", type(run).__name__), run)
        with self._lock:
            self._entries = sorted([*self._entries, entry], key=lambda e: (e.grouping, e.phase))

    def unregister(self, name: str) -> None:
        """Remove all passes of a name."""
        with self._lock:
            self._entries = [entry for entry in self._entries if entry.name != name]

    def passes(self, grouping: Grouping | None = None) -> list[PassEntry]:
        """Return all passes, or those of a group, in the order in which they run."""
        with self._lock:
            return [entry for entry in self._entries if grouping is None or entry.grouping == grouping]

    def run(self, grouping: Grouping, options: OptimizationPassOptions) -> Graph:
        """Run the passes of a group.

        Returns
        -------
        Graph
            Rewritten graph.

        Raises
        ------
        OpError
            A pass failed; the error names the pass.
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
    """Register a pass, by default in the global registry."""
    (registry or OptimizationPassRegistry.global_()).register(grouping, phase, run, name)
