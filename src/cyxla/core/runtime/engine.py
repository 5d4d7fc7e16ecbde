"""The engine of a session: devices, resources, functions, kernels and a thread pool, shared by its executors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import Any

from cyxla.core.framework.device_base import DeviceBase
from cyxla.core.framework.environment.file_access import UNLIMITED
from cyxla.core.framework.function import FunctionLibraryDefinition
from cyxla.core.framework.kernel_registry import KernelRegistry, create_op_kernel
from cyxla.core.framework.node_properties import resolve
from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.resource_mgr import ResourceMgr
from cyxla.core.framework.step.context import StepContext
from cyxla.core.framework.step.thread_pool import ThreadPool
from cyxla.core.graph.graph import Graph, Node
from cyxla.core.runtime.device import DeviceSet, default_device
from cyxla.core.runtime.executor_factory import Executor, ExecutorRegistry
from cyxla.core.runtime.function_runtime import FunctionCallKernel, FunctionRuntime, is_function_call
from cyxla.core.runtime.invoke import Array, annotate
from cyxla.core.runtime.optimization_registry import Grouping, OptimizationPassOptions, OptimizationPassRegistry
from cyxla.core.runtime.partition import partition
from cyxla.core.runtime.placer import Placer
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from cyxla.forking import call_in_child, new_lock

_WITHOUT_KERNEL = frozenset({"_Arg", "_Retval", "_DeviceArg", "_DeviceRetval"})
_INSIDE = local()  # `pool` is set on threads of a pool, which must not wait for the pool


class Engine:
    """Prepares and runs graphs.

    Attributes
    ----------
    file_access : FileAccess
        Files that kernels may access.

    Parameters
    ----------
    devices : DeviceSet
        Devices on which nodes may run.
    threads : int, optional
        Size of the thread pool for expensive kernels; the number of available CPUs by default.
    soft_placement : bool
        True to relax placement requests that cannot be satisfied; see `Placer`.
    log_device_placement : bool
        True to print the placement of every node.
    optimize : bool
        True to run the optional passes that simplify graphs.
    kernels : KernelRegistry, optional
        Registry of kernels; the global one by default.
    passes : OptimizationPassRegistry, optional
        Registry of passes; the global one by default.
    executor_type : str
        Name of the executor; see `ExecutorRegistry`.
    """

    def __init__(
        self,
        devices: DeviceSet,
        *,
        threads: int | None = None,
        soft_placement: bool = True,
        log_device_placement: bool = False,
        optimize: bool = True,
        kernels: KernelRegistry | None = None,
        passes: OptimizationPassRegistry | None = None,
        settings: dict[str, Any] | None = None,
        executor_type: str = "",
    ) -> None:
        self.devices, self.executor_type = devices, executor_type
        self.default_device = default_device(devices.devices)
        self.soft_placement, self.log_device_placement, self.optimize = soft_placement, log_device_placement, optimize
        self.settings = settings or {}
        self.file_access = UNLIMITED
        self.resource_manager = ResourceMgr()
        for device in devices:
            device.resource_manager = self.resource_manager
        self.threads = threads or len(os.sched_getaffinity(0))
        for device in devices:
            device.thread_pool = device.thread_pool or ThreadPool(self.threads)
        self.kernels = kernels or KernelRegistry.global_()
        self.passes = passes or OptimizationPassRegistry.global_()
        self._functions: dict[int, FunctionRuntime] = {}
        self._stateful: dict[tuple[str, str], OpKernel] = {}
        self._lock = new_lock()
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False
        call_in_child(self._forget_threads)

    def device_of(self, node: Node) -> DeviceBase:
        """Return the device to which a node is assigned."""
        return self.devices.find(node.assigned_device) if node.assigned_device else self.default_device

    def find_device(self, name: str) -> DeviceBase:
        """Return a device by its full or partial name."""
        return self.devices.find(name)

    def functions(self, library: FunctionLibraryDefinition) -> FunctionRuntime:
        """Return the runtime for the functions of a library."""
        runtime = self._functions.get(id(library))  # the runtime keeps the library alive, so its id is unique
        if runtime is None:
            with self._lock:
                runtime = self._functions.setdefault(id(library), FunctionRuntime(self, library))
        return runtime

    def kernel(self, node: Node, *, keep: bool) -> OpKernel:
        """Return the kernel of a node; with `keep`, a stateful kernel is cached, so that its state persists.

        Raises
        ------
        InvalidArgumentError
            There is no kernel for the node's types on its device.
        OpError
            The constructor of the kernel failed.
        """
        device = self.device_of(node)
        if not (keep and node.is_stateful):
            return self._make_kernel(node, device)
        key = (device.name, node.name)
        kernel = self._stateful.get(key)
        if kernel is None or kernel.type_string != node.op:
            new_kernel = self._make_kernel(node, device)
            with self._lock:
                kernel = self._stateful[key] = new_kernel
        return kernel

    def _make_kernel(self, node: Node, device: DeviceBase) -> OpKernel:
        node_def, library = node.node_def, node.graph.library
        if is_function_call(node):
            return FunctionCallKernel(OpKernelConstruction(device, resolve(node_def, node.op_def)))
        try:
            return create_op_kernel(
                device,
                node_def,
                ops=library,
                kernels=self.kernels,
                function_library=self.functions(library),
                graph_def_version=node.graph.versions.producer,
                file_access=self.file_access,
            )
        except NotFoundError as error:
            self._check_has_kernel(node, device)
            raise annotate(error, node) from None
        except Exception as error:
            raise annotate(error, node) from None

    def _check_has_kernel(self, node: Node, device: DeviceBase) -> None:
        """Raise InvalidArgumentError if no kernel is registered; other NotFoundErrors are those of a constructor."""
        try:
            self.kernels.find(device.device_type, node.node_def)
        except NotFoundError as error:
            raise InvalidArgumentError(
                error.message, node=node.name, op=node.op, where=f"node '{node.name}' ({node.op})"
            ) from None

    def place(self, graph: Graph) -> Graph:
        """Run the placer, and the passes before and after it, on a graph that may be modified."""
        options = OptimizationPassOptions(graph, self, settings=self.settings)
        self.passes.run(Grouping.PRE_PLACEMENT, options)
        Placer(
            options.graph,
            self.devices,
            soft_placement=self.soft_placement,
            log=self.log_device_placement,
            kernels=self.kernels,
        ).run()
        return self.passes.run(Grouping.POST_PLACEMENT, options)

    def prepare(self, graph: Graph, *, keep_kernels: bool = True, executor_type: str = "") -> Runner:
        """Create the kernels and the executor of a placed graph that may be modified.

        Parameters
        ----------
        graph : Graph
            Pruned graph of a run, or the body of a function.
        keep_kernels : bool
            True to share stateful kernels among all graphs of the engine, by the names of their nodes.
        executor_type : str
            Name of the executor; that of the engine by default.
        """
        check_indices(graph)
        options = OptimizationPassOptions(graph, self, settings=self.settings)
        graph = self.passes.run(Grouping.POST_REWRITE_FOR_EXEC, options)
        partitions = partition(graph, self.devices)
        names, parts = list(partitions), [self._optimize_part(part, name) for name, part in partitions.items()]
        composed = [self._compose_part(part, name) for part, name in zip(parts, names, strict=True)]
        kernels = [self._make_kernels(part, keep_kernels) for part in composed]
        pairs = list(zip(composed, kernels, strict=True))
        return Runner(parts, ExecutorRegistry.global_().make(executor_type or self.executor_type, pairs))

    def _optimize_part(self, graph: Graph, device: str) -> Graph:
        options = OptimizationPassOptions(graph, self, device, self.settings)
        return self.passes.run(Grouping.POST_PARTITIONING, options) if self.optimize else graph

    def _compose_part(self, graph: Graph, device: str) -> Graph:
        options = OptimizationPassOptions(graph, self, device, self.settings)
        return self.passes.run(Grouping.COMPOSITION, options) if self.optimize else graph

    def _make_kernels(self, graph: Graph, keep: bool) -> dict[Node, OpKernel]:
        nodes = [node for node in graph.nodes.values() if node.op not in _WITHOUT_KERNEL]
        return {node: self.kernel(node, keep=keep) for node in nodes}

    def submit(self, work: Callable[[], object]) -> None:
        """Run a closure on the pool, or immediately if the caller is a pool thread, which could otherwise deadlock."""
        if getattr(_INSIDE, "pool", False) or self.threads < 2:
            work()
            return
        if self._pool is None:
            with self._lock:
                if self._closed:
                    raise FailedPreconditionError("the session is closed")
                self._pool = self._pool or ThreadPoolExecutor(self.threads, "cyxla", _mark_pool_thread)
        self._pool.submit(work)

    def _forget_threads(self) -> None:
        self._pool = None  # a forked child does not have its threads

    def close(self) -> None:
        """Drop all resources, kernels and threads."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
            self._stateful.clear()
        if pool is not None:
            pool.shutdown(wait=False)
        for device in self.devices:
            if device.thread_pool is not None:
                device.thread_pool.close()
        self.resource_manager.clear()


def _mark_pool_thread() -> None:
    _INSIDE.pool = True


def check_indices(graph: Graph) -> None:
    """Check that the indices of arguments and results are 0, 1, 2 and so on, each once.

    Raises
    ------
    InvalidArgumentError
        The indices differ.
    """
    for op in ("_Arg", "_Retval"):
        indices = sorted(node.attr("index") for node in graph.nodes.values() if node.op == op)
        if indices != list(range(len(indices))):
            raise InvalidArgumentError(f"the {op} nodes of a graph are numbered {indices}", hint="count from 0")


class Runner:
    """A graph that is ready to run.

    Attributes
    ----------
    parts : list of Graph
        Rewritten graphs, one for each device.
    """

    def __init__(self, parts: list[Graph], executor: Executor) -> None:
        self.parts, self.executor = parts, executor

    def run(self, step: StepContext, args: Sequence[Array]) -> list[Any]:
        """Run the graph, and return the values of the ``_Retval`` nodes in order."""
        return self.executor.run(step, args)
