"""Sessions: running parts of a graph, again and again, with state between the runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from sys import getrefcount
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Any, Self

import numpy as np

from cyxla.core.framework.apply import to_array
from cyxla.core.framework.cancellation import CancellationManager
from cyxla.core.framework.device_base import DeviceBase
from cyxla.core.framework.step import StepContext
from cyxla.core.framework.types import DataType
from cyxla.core.framework.variable import Ref
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.core.runtime.engine import Engine, Runner
from cyxla.core.runtime.subgraph import executable_graph
from cyxla.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ShapeError,
    UnimplementedError,
)

Array = np.ndarray[Any, Any]


@dataclass
class RunOptions:
    """How one run is to go.

    Parameters
    ----------
    timeout : float, optional
        Seconds until the run fails with `DeadlineExceededError`.
    cancellation : CancellationManager, optional
        Its `start_cancel` stops the run.
    memory_limit : int, optional
        Most bytes that kernels may allocate through their contexts.
    """

    timeout: float | None = None
    cancellation: CancellationManager | None = None
    memory_limit: int | None = None


_DEFAULT = RunOptions()


class Session:
    """Runs parts of a graph; variables and other resources keep their values between runs.

    Parameters
    ----------
    graph : Graph
        May grow while the session is in use.
    jit : str
        ``"off"`` runs every node by its kernel.
    platform : str
        What compiled parts run on.
    threads : int, optional
        Threads for expensive kernels; the number of processors by default.

    Examples
    --------
    >>> graph = Graph()
    >>> x = graph.placeholder("float", [2], name="x")
    >>> y = graph.constant([1.0, 2.0], name="c") + x
    >>> Session(graph).run(y, {x: [3.0, 4.0]})
    array([4., 6.], dtype=float32)
    """

    def __init__(self, graph: Graph, jit: str = "off", platform: str = "cpu", *, threads: int | None = None) -> None:
        if jit != "off":
            raise UnimplementedError(f"jit={jit!r}: nothing compiles graphs here", hint='use jit="off"')
        self.graph, self.jit, self.platform = graph, jit, platform
        self.engine = Engine([DeviceBase()], threads=threads)
        self._programs: dict[Any, _Program] = {}
        self._runners: dict[Any, Runner] = {}
        self._lock = Lock()
        self._closed = False
        self._size = len(graph.nodes)

    def run(self, fetches: Any, feeds: Mapping[Any, Any] | None = None, *, options: RunOptions | None = None) -> Any:
        """Compute fetches.

        Parameters
        ----------
        fetches : str, Tensor or Node, or a sequence of them
            A tensor is named ``"node:0"``; a node is run for its effect, and its result is None.
        feeds : dict, optional
            Values by tensor or name of a tensor; any tensor of the graph may be fed.
        options : RunOptions, optional
            Limits of this run.

        Returns
        -------
        ndarray or None, or a list of them
            In the form of `fetches`.

        Raises
        ------
        NotFoundError
            A fetch or feed is not in the graph.
        InvalidArgumentError
            A fed value does not fit its tensor, a placeholder is not fed, a node has no kernel; what kernels raise.
        FailedPreconditionError
            A variable has no value yet, or the session is closed.
        """
        if self._closed:
            raise FailedPreconditionError("the session is closed", hint="make another one")
        single = isinstance(fetches, (str, Tensor, Node))
        names = (fetches,) if single else tuple(fetches)
        feeds = feeds or {}
        program = self._program(names, tuple(feeds))
        args = [_fed_value(t, v) for t, v in zip(program.feeds, feeds.values(), strict=True)]
        values = self._execute(program, args, options or _DEFAULT)
        results = program.collect(values, args)
        return results[0] if single else results

    def _execute(self, program: _Program, args: list[Array], options: RunOptions) -> list[Any]:
        engine = self.engine
        step = StepContext(
            engine.resource_manager,
            None,
            CancellationManager(options.cancellation) if options.cancellation is not None else None,
            engine.functions(self.graph.library),
            engine.submit,
            deadline=None if options.timeout is None else monotonic() + options.timeout,
            memory_limit=options.memory_limit,
        )
        try:
            return program.runner.run(step, [args[k] for k in program.order])
        finally:
            step.close()

    def _program(self, fetches: tuple[Any, ...], feeds: tuple[Any, ...]) -> _Program:
        if len(self.graph.nodes) != self._size:
            with self._lock:
                self._programs.clear()
                self._runners.clear()
                self._size = len(self.graph.nodes)
        key = (fetches, feeds)
        program = self._programs.get(key)
        if program is None:
            with self._lock:
                program = self._programs.get(key) or self._prepare(fetches, feeds)
                self._programs[key] = program
        return program

    def _prepare(self, fetches: tuple[Any, ...], feeds: tuple[Any, ...]) -> _Program:
        wanted = [_resolve(self.graph, f) for f in fetches]
        fed = [_resolve_tensor(self.graph, f) for f in feeds]
        if len({t.name for t in fed}) < len(fed):
            raise InvalidArgumentError("a tensor is fed twice", hint="name it once")
        order = sorted(range(len(fed)), key=lambda k: fed[k].name)
        given = {t.name: k for k, t in enumerate(fed)}
        tensors = {t.name: t for t in wanted if isinstance(t, Tensor) and t.name not in given}
        targets = {n.name: n for n in wanted if isinstance(n, Node)}
        computed = sorted(tensors)
        key = (tuple(fed[k].name for k in order), tuple(computed), tuple(sorted(targets)))
        if key not in self._runners:
            part = executable_graph(
                self.graph, [fed[k] for k in order], [tensors[n] for n in computed], list(targets.values())
            )
            self._runners[key] = self.engine.prepare(part)
        place = {name: k for k, name in enumerate(computed)}
        sources = [
            None if isinstance(w, Node) else ("fed", given[w.name]) if w.name in given else ("run", place[w.name])
            for w in wanted
        ]
        return _Program(self._runners[key], fed, order, sources)

    def close(self) -> None:
        """Drop the session's variables and threads; a closed session cannot run."""
        self._closed = True
        self._programs.clear()
        self._runners.clear()
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(slots=True)
class _Program:
    """What is known of one combination of fetches and feeds."""

    runner: Runner
    feeds: list[Tensor]
    order: list[int]  # of the feeds in the executor
    sources: list[tuple[str, int] | None]  # where each result comes from

    def collect(self, values: list[Any], args: list[Array]) -> list[Array | None]:
        """The results; arrays that anybody else may hold or change are copied."""
        results: list[Array | None] = []
        for source in self.sources:
            if source is None:
                results.append(None)
            elif source[0] == "fed":
                results.append(args[source[1]].copy())
            else:
                results.append(_own(values, source[1]))
        return results


_HOLDERS = 3  # of an array that nobody else holds: the list of values, a variable here, getrefcount itself


def _own(values: list[Any], index: int) -> Array:
    """A value that the caller may write to."""
    value: Any = values[index]
    if isinstance(value, Ref):
        value = value.read()
        if value is None:
            raise FailedPreconditionError("Attempting to use an uninitialized variable", hint="run its initializer")
    if value.base is not None or getrefcount(value) > _HOLDERS or not value.flags.writeable:
        value = value.copy()
    values[index] = value  # the same array fetched twice is copied the second time
    return value


def _resolve(graph: Graph, fetch: Any) -> Tensor | Node:
    """The tensor or node that a fetch means."""
    if isinstance(fetch, str) and ":" not in fetch:
        return graph.node(fetch.removeprefix("^"))
    if isinstance(fetch, Node):
        return _inside(graph, fetch)
    return _resolve_tensor(graph, fetch)


def _resolve_tensor(graph: Graph, name: Any) -> Tensor:
    if isinstance(name, Tensor):
        _inside(graph, name.node)
        return name
    if not isinstance(name, str):
        raise InvalidArgumentError(f"{name!r} is neither a tensor nor the name of one")
    try:
        return graph.tensor(name)
    except NotFoundError:
        raise NotFoundError(f"'{name}' is not a tensor of the graph", hint="names look like 'node:0'") from None


def _inside(graph: Graph, node: Node) -> Node:
    if node.graph is not graph:
        raise InvalidArgumentError(f"'{node.name}' belongs to another graph", node=node.name, op=node.op)
    return node


def _fed_value(tensor: Tensor, value: Any) -> Array:
    """A fed value as an array of the tensor's type.

    Raises
    ------
    DTypeError
        An array of another type.
    ShapeError
        Its shape contradicts what the graph says of the tensor.
    """
    dtype = tensor.dtype.base
    if isinstance(value, (np.ndarray, np.generic)):
        array = _typed_array(tensor, np.asarray(value), dtype)
    else:
        array = to_array(value, dtype, f"the value fed to '{tensor.name}'")
    dims = tensor.shape.dims
    if dims is not None and (
        len(dims) != array.ndim or any(d is not None and d != n for d, n in zip(dims, array.shape, strict=True))
    ):
        raise ShapeError(
            f"'{tensor.name}' has shape {tensor.shape}, but an array of shape {list(array.shape)} is fed",
            node=tensor.node.name,
            op=tensor.node.op,
        )
    return array


def _typed_array(tensor: Tensor, array: Array, dtype: DataType) -> Array:
    if array.dtype == dtype.numpy and dtype != DataType.DT_STRING:
        return array
    if dtype == DataType.DT_STRING and array.dtype.kind in "SUO":
        return to_array(array, dtype)
    raise DTypeError(
        f"'{tensor.name}' is {dtype}, but an array of {array.dtype} is fed",
        node=tensor.node.name,
        op=tensor.node.op,
        hint=f"feed an array of {dtype.numpy_name}",
    )
