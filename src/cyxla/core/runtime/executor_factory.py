"""Executors by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from cyxla.core.framework.step.context import StepContext
from cyxla.core.graph.graph import Graph, Node
from cyxla.core.runtime.executor import FlatExecutor, is_control_flow, is_flat
from cyxla.core.runtime.frame_executor import FrameExecutor
from cyxla.core.runtime.invoke import Array
from cyxla.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError, UnimplementedError
from cyxla.forking import new_lock

Parts = Sequence[tuple[Graph, Mapping[Node, Any]]]
DEFAULT, SINGLE_THREADED = "DEFAULT", "SINGLE_THREADED_EXECUTOR"


class Executor(Protocol):
    """Executor of a graph that was partitioned over devices."""

    def run(self, step: StepContext, args: Sequence[Array]) -> list[Any]:
        """Run the graph, and return the values of its ``_Retval`` nodes in order."""
        ...


ExecutorFactory = Callable[[Parts], Executor]


class ExecutorRegistry:
    """Table of factories of executors by name."""

    def __init__(self) -> None:
        self._factories: dict[str, ExecutorFactory] = {}
        self._lock = new_lock()

    @staticmethod
    @lru_cache(maxsize=1)
    def global_() -> ExecutorRegistry:
        """Return the registry of the process, which has the two executors of this package."""
        registry = ExecutorRegistry()
        registry.register(DEFAULT, _default)
        registry.register(SINGLE_THREADED, _single_threaded)
        return registry

    def register(self, name: str, factory: ExecutorFactory) -> None:
        """Register a factory, which takes the partitions of a graph, each with its kernels.

        Raises
        ------
        AlreadyExistsError
            The name is taken.
        """
        with self._lock:
            if name in self._factories:
                raise AlreadyExistsError(f"an executor '{name}' is already registered")
            self._factories[name] = factory

    def unregister(self, name: str) -> None:
        """Remove a factory."""
        with self._lock:
            self._factories.pop(name, None)

    def make(self, name: str, parts: Parts) -> Executor:
        """Make the executor of a name; an empty one stands for the default.

        Raises
        ------
        NotFoundError
            There is no such executor.
        OpError
            The executor cannot run the graph.
        """
        factory = self._factories.get(name or DEFAULT)
        if factory is None:
            raise NotFoundError(
                f"No executor factory registered for the given executor type: {name} Registered factories are "
                f"{{{', '.join(self._factories)}}}."
            )
        return factory(parts)


def _default(parts: Parts) -> Executor:
    if len(parts) == 1 and is_flat(*parts[0]):
        return FlatExecutor(*parts[0])
    return FrameExecutor(parts)


def _single_threaded(parts: Parts) -> Executor:
    """Make an executor that runs all kernels, asynchronous ones included, one by one on the thread of the step."""
    if len(parts) != 1:
        raise UnimplementedError(f"{SINGLE_THREADED}: the graph is placed on {len(parts)} devices")
    graph, kernels = parts[0]
    for node in graph.nodes.values():
        if is_control_flow(node):
            raise FailedPreconditionError(
                "Single-threaded executor does not support low level control flow, but saw control flow node "
                f"{node.name}.  Perhaps your graph contains old-style control flow primitives?",
                node=node.name,
                op=node.op,
                hint="use If and While, or the default executor",
            )
    return FlatExecutor(graph, kernels)
