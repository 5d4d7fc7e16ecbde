"""Sessions: repeated runs of parts of a graph, with state that persists between the runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Any, Self

import numpy as np

from cyxla.core.framework.environment.file_access import NO_FILES, UNLIMITED, FileAccess
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.step.cancellation import CancellationManager
from cyxla.core.framework.step.context import StepContext
from cyxla.core.framework.step.rendezvous import Rendezvous
from cyxla.core.framework.step.session_state import SessionMetadata, SessionState
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.core.runtime.device import DeviceSet
from cyxla.core.runtime.device_factory import DeviceFactoryRegistry
from cyxla.core.runtime.engine import Engine, Runner
from cyxla.core.runtime.optimization_registry import OptimizationPassRegistry
from cyxla.core.runtime.session_values import fed_value, resolve, resolve_tensor, take_ownership
from cyxla.core.runtime.step_stats import RunMetadata
from cyxla.core.runtime.subgraph import executable_graph, shallow_copy
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from cyxla.forking import new_lock
from cyxla.gc_pause import fewer_collections

Array = np.ndarray[Any, Any]
Prepare = Callable[[Engine, Graph], Runner]
_JIT_MODES: dict[str, Prepare] = {}


def register_jit(mode: str, prepare: Prepare) -> None:
    """Register the function by which sessions with ``jit=mode`` prepare a graph; the default is `Engine.prepare`."""
    _JIT_MODES[mode] = prepare


@dataclass(frozen=True)
class RunOptions:
    """Options of one run.

    Parameters
    ----------
    timeout : float, optional
        Time in seconds after which the run fails with `DeadlineExceededError`.
    cancellation : CancellationManager, optional
        Cancellation manager whose `start_cancel` stops the run.
    memory_limit : int, optional
        Maximum number of bytes that kernels may allocate through their contexts.
    inline : bool
        True to run all kernels, including expensive ones, on the calling thread.
    """

    timeout: float | None = None
    cancellation: CancellationManager | None = None
    memory_limit: int | None = None
    inline: bool = False


_DEFAULT = RunOptions()


class Session:
    """A session runs parts of a graph; variables and other resources keep their values between runs.

    Any number of threads may run one session at the same time.

    Parameters
    ----------
    graph : Graph
        Graph to run; nodes may be added while the session is in use.
    jit : str
        Compilation mode: ``"off"`` runs every node by its kernel, except those that request compilation; ``"auto"``
        compiles clusters of nodes; ``"on"`` compiles the whole graph as one program.
    platform : str
        Platform for compiled code.
    devices : DeviceSet or dict of int, optional
        Devices, or the number of devices of each type; by default those that the registered factories find.
    threads : int, optional
        Number of threads for expensive kernels; the number of available CPUs by default.
    soft_placement : bool
        True to place a node elsewhere if it cannot run on the requested device, instead of raising an error.
    log_device_placement : bool
        True to print ``name: (op): device`` for every node to the standard error stream.
    optimize : bool
        True to fold constants and merge equal nodes.
    kernels, passes : registries, optional
        Registries of kernels and passes; the global ones by default.
    allow_file_access : bool, optional
        True to let nodes access any file. By default a loaded graph is limited to the folder of its model, and other
        graphs are not limited. False limits other graphs to no files.
    metadata : SessionMetadata, optional
        Name and version of the session, for kernels that report them.
    executor_type : str
        Name of the executor: ``"DEFAULT"``, ``"SINGLE_THREADED_EXECUTOR"``, which runs all kernels on the calling
        thread and takes no branches and loops of single nodes, or one that was added to `ExecutorRegistry`.

    Examples
    --------
    >>> graph = Graph()
    >>> x = graph.placeholder("float", [2], name="x")
    >>> y = graph.constant([1.0, 2.0], name="c") + x
    >>> Session(graph).run(y, {x: [3.0, 4.0]})
    array([4., 6.], dtype=float32)
    """

    def __init__(
        self,
        graph: Graph,
        jit: str = "off",
        platform: str = "cpu",
        *,
        devices: DeviceSet | Mapping[str, int] | None = None,
        threads: int | None = None,
        soft_placement: bool = True,
        log_device_placement: bool = False,
        optimize: bool = True,
        kernels: KernelRegistry | None = None,
        passes: OptimizationPassRegistry | None = None,
        allow_file_access: bool | None = None,
        metadata: SessionMetadata | None = None,
        executor_type: str = "",
    ) -> None:
        if jit != "off" and jit not in _JIT_MODES:
            raise UnimplementedError(
                f"jit={jit!r}: no compiler is registered for this mode",
                hint=f'use jit="off"{", " + ", ".join(_JIT_MODES) if _JIT_MODES else ""}',
            )
        if not isinstance(devices, DeviceSet):
            devices = DeviceFactoryRegistry.global_().create_devices(devices)
        self.graph, self.jit, self.platform = graph, jit, platform
        self.engine = Engine(
            devices,
            threads=threads,
            soft_placement=soft_placement,
            log_device_placement=log_device_placement,
            optimize=optimize,
            kernels=kernels,
            passes=passes,
            settings={"jit": jit, "platform": platform},
            executor_type=executor_type,
        )
        self._allow_file_access, self.metadata = allow_file_access, metadata
        self._state = SessionState()
        self._placed_graph: Graph | None = None
        self._programs: dict[Any, _Program] = {}
        self._runners: dict[Any, Runner] = {}
        self._size = (-1, -1)
        self._lock = new_lock()
        self._cancellation = CancellationManager()
        self._closed = False

    def run(
        self,
        fetches: Any,
        feeds: Mapping[Any, Any] | None = None,
        *,
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
    ) -> Any:
        """Compute fetches.

        Parameters
        ----------
        fetches : str, Tensor or Node, or a sequence of them
            Tensors, named ``"node:0"``, and nodes, which run for their side effects and give None.
        feeds : dict, optional
            Values by tensor or name of a tensor; any tensor of the graph can be fed.
        options : RunOptions, optional
            Options of this run.
        metadata : RunMetadata, optional
            Record that is filled with statistics.

        Returns
        -------
        ndarray or None, or a list of them
            Results in the structure of `fetches`; the caller owns the arrays.

        Raises
        ------
        NotFoundError
            A fetch or feed is not in the graph.
        InvalidArgumentError
            A fed value does not match its tensor, a placeholder is not fed, or a node has no kernel or placement.
        FailedPreconditionError
            A variable has no value yet, or the session is closed.
        OpError
            A kernel failed; the error names the node.
        """
        if self._closed:
            raise FailedPreconditionError("the session is closed", hint="create another session")
        single = isinstance(fetches, (str, Tensor, Node))
        feeds = feeds or {}
        program = self._program((fetches,) if single else tuple(fetches), tuple(feeds))
        args = program.convert_feeds(feeds.values())
        values = self._execute(program, [args[k] for k in program.order], options or _DEFAULT, metadata)
        results = program.collect_results(values, args)
        return results[0] if single else results

    def _execute(
        self, program: _Program, args: list[Array], options: RunOptions, metadata: RunMetadata | None
    ) -> list[Any]:
        engine, runner, parent = self.engine, program.runner, options.cancellation
        cancellation = CancellationManager(self._cancellation if parent is None else parent)
        step = StepContext(
            engine.resource_manager,
            Rendezvous() if len(runner.parts) > 1 else None,
            cancellation,
            engine.functions(self.graph.library),
            engine.submit,
            deadline=None if options.timeout is None else monotonic() + options.timeout,
            memory_limit=options.memory_limit,
            run_all_kernels_inline=options.inline,
            stats_collector=None if metadata is None else metadata.step_stats,
            track_allocations=metadata is not None,
            file_access=self._file_access(),
            session_state=self._state,
            session_metadata=self.metadata,
            executor_type=engine.executor_type,
            graph_collector=None if metadata is None else metadata.function_graphs,
        )
        if metadata is not None:
            metadata.partition_graphs = runner.parts
        try:
            values = runner.run(step, args)
            step.save_tensors(program.fetched)
            return values
        finally:
            step.wait_for_deferred_ops()
            cancellation.close()
            step.close()

    def _file_access(self) -> FileAccess:
        """Return the files that nodes may access; an import into the graph may revoke access."""
        access = self.graph.file_access
        if self._allow_file_access:
            return UNLIMITED
        return NO_FILES if self._allow_file_access is False and not access.is_limited else access

    # programs -------------------------------------------------------------------------------------------------
    def _program(self, fetches: tuple[Any, ...], feeds: tuple[Any, ...]) -> _Program:
        """Return the cached program of a combination of fetches and feeds."""
        size = (len(self.graph.nodes), len(self.graph.library))
        if size == self._size:
            program = self._programs.get((fetches, feeds))
            if program is not None:
                return program
        with self._lock, fewer_collections():
            if size != self._size:
                self._programs.clear()
                self._runners.clear()
                self._placed_graph, self._size = None, size
            program = self._programs[fetches, feeds] = self._prepare(fetches, feeds)
        return program

    def _prepare(self, fetches: tuple[Any, ...], feeds: tuple[Any, ...]) -> _Program:
        self.engine.file_access = self._file_access()
        resolved = [resolve(self.graph, f) for f in fetches]
        fed = [resolve_tensor(self.graph, f) for f in feeds]
        feed_indices = {t.name: k for k, t in enumerate(fed)}
        if len(feed_indices) < len(fed):
            raise InvalidArgumentError("a tensor is fed twice", hint="feed it once")
        computed = sorted({w.name for w in resolved if isinstance(w, Tensor)} - feed_indices.keys())
        targets = sorted({w.name for w in resolved if isinstance(w, Node)})
        runner = self._runner(tuple(sorted(feed_indices)), tuple(computed), tuple(targets))
        position = {name: k for k, name in enumerate(computed)}
        sources = [
            None
            if isinstance(w, Node)
            else (True, feed_indices[w.name])
            if w.name in feed_indices
            else (False, position[w.name])
            for w in resolved
        ]
        order = sorted(range(len(fed)), key=lambda k: fed[k].name)
        fetched = tuple(w.node.name for w in resolved if isinstance(w, Tensor))
        return _Program(runner, fed, order, sources, [()] * len(fed), fetched)

    def _runner(self, feeds: tuple[str, ...], fetches: tuple[str, ...], targets: tuple[str, ...]) -> Runner:
        """Return the cached runner for sorted names, which does not depend on their order in a call."""
        key = (feeds, fetches, targets)
        if key not in self._runners:
            if self._placed_graph is None:
                self._placed_graph = self.engine.place(shallow_copy(self.graph))
            graph = self._placed_graph
            part = executable_graph(
                graph,
                [graph.tensor(n) for n in feeds],
                [graph.tensor(n) for n in fetches],
                [graph.node(n) for n in targets],
            )
            self._runners[key] = _JIT_MODES.get(self.jit, Engine.prepare)(self.engine, part)
        return self._runners[key]

    @property
    def num_executors(self) -> int:
        """The number of prepared combinations of feeds, fetches and targets."""
        return len(self._runners)

    def clusters(self) -> dict[str, Any]:
        """Return for each node of the graphs run so far its cluster, or the reason why it is in none.

        Returns
        -------
        dict
            Records with ``op``, ``cluster``, ``reason`` and ``border`` (the reason why a node that it reads is in
            another cluster) by node name; empty if the session does not compile.
        """
        return dict(self.engine.settings.get("clusters", {}))

    def explanation(self) -> Any:
        """Return the refusals of clustering in the graphs run or prepared so far, for tools.

        Returns
        -------
        Explanation or None
            Record like that of an executable, with a refusal for each node in no cluster; None if the session does not
            compile, or has prepared no graph yet.
        """
        explain = self.engine.settings.get("explain_clusters")
        return explain(self.clusters(), self.platform) if explain is not None else None

    def explain(self) -> str:
        """Describe the clusters of the graphs run or prepared so far, and the reason for each node in none."""
        return str(self.explanation() or "all nodes run by their kernels: no graph was clustered")

    def prepare(self, fetches: Sequence[Any], feeds: Sequence[Any] = ()) -> None:
        """Prepare a combination of fetches and fed tensors, as the first `run` of it does, without running it."""
        self._program(tuple(fetches), tuple(feeds))

    def close(self) -> None:
        """Cancel running steps, and drop variables and threads; a closed session cannot run."""
        self._closed = True
        self._cancellation.start_cancel()
        with self._lock:
            self._programs.clear()
            self._runners.clear()
        self.engine.close()
        self._state.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(slots=True)
class _Program:
    """A prepared combination of fetches and feeds."""

    runner: Runner
    feeds: list[Tensor]
    order: list[int]  # indices of the feeds in the order of the runner's arguments
    sources: list[tuple[bool, int] | None]  # for each result, True if it is fed, and its index in the feeds or values
    kinds: list[tuple[Any, ...]]  # for each feed, dtype and shape of the last array that was checked
    fetched: tuple[str, ...]  # nodes whose outputs are fetched

    def convert_feeds(self, values: Collection[Any]) -> list[Array]:
        """Convert fed values to arrays; arrays of the same dtype and shape as in the last run are not checked again."""
        args: list[Array] = []
        for k, value in enumerate(values):
            if value.__class__ is not np.ndarray or (value.dtype, value.shape) != self.kinds[k]:
                value = fed_value(self.feeds[k], value)
                self.kinds[k] = () if value.dtype.hasobject else (value.dtype, value.shape)
            args.append(value)
        return args

    def collect_results(self, values: list[Any], args: list[Array]) -> list[Array | None]:
        """Return the results; arrays that others may hold or modify are copied."""
        results: list[Array | None] = []
        for source in self.sources:
            if source is None:
                results.append(None)
            else:
                is_fed, index = source
                results.append(args[index].copy() if is_fed else take_ownership(values, index))
        return results
