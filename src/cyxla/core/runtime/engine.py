"""What the executors of one session share: devices, resources, functions, kernels and a pool of threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import Any

from cyxla.core.framework.device_base import DeviceBase
from cyxla.core.framework.function import FunctionLibraryDefinition
from cyxla.core.framework.kernel_registry import KernelRegistry, create_op_kernel
from cyxla.core.framework.node_properties import resolve
from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.resource_mgr import ResourceMgr
from cyxla.core.framework.step.context import StepContext
from cyxla.core.framework.step.file_access import UNLIMITED
from cyxla.core.graph.graph import Graph, Node
from cyxla.core.runtime.device import DeviceSet, default_device
from cyxla.core.runtime.executor import FlatExecutor, is_flat
from cyxla.core.runtime.frame_executor import FrameExecutor
from cyxla.core.runtime.function_runtime import FunctionCallKernel, FunctionRuntime, is_function_call
from cyxla.core.runtime.invoke import Array, annotate
from cyxla.core.runtime.optimization_registry import Grouping, OptimizationPassOptions, OptimizationPassRegistry
from cyxla.core.runtime.partition import partition
from cyxla.core.runtime.placer import Placer
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from cyxla.forking import call_in_child, new_lock

_WITHOUT_KERNEL = frozenset({"_Arg", "_Retval", "_DeviceArg", "_DeviceRetval"})
_INSIDE = local()  # whether this thread is one of a pool: what it calls must not wait for the pool


class Engine:
    """Prepares graphs and runs them.

    Attributes
    ----------
    file_access : FileAccess
        Files that kernels may touch.

    Parameters
    ----------
    devices : DeviceSet
        Where nodes may run.
    threads : int, optional
        Size of the pool for expensive kernels; the number of processors that may be used by default.
    soft_placement : bool
        See `Placer`.
    log_device_placement : bool
        Print where every node is placed.
    optimize : bool
        Whether the passes run that only make graphs smaller.
    kernels : KernelRegistry, optional
        The global registry by default.
    passes : OptimizationPassRegistry, optional
        The global registry by default.
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
    ) -> None:
        self.devices = devices
        self.default_device = default_device(devices.devices)
        self.soft_placement, self.log_device_placement, self.optimize = soft_placement, log_device_placement, optimize
        self.settings = settings or {}
        self.file_access = UNLIMITED
        self.resource_manager = ResourceMgr()
        for device in devices:
            device.resource_manager = self.resource_manager
        self.threads = threads or len(os.sched_getaffinity(0))
        self.kernels = kernels or KernelRegistry.global_()
        self.passes = passes or OptimizationPassRegistry.global_()
        self._functions: dict[int, FunctionRuntime] = {}
        self._stateful: dict[tuple[str, str], OpKernel] = {}
        self._lock = new_lock()
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False
        call_in_child(self._forget_threads)

    def device_of(self, node: Node) -> DeviceBase:
        """The device a node was assigned to."""
        return self.devices.find(node.assigned_device) if node.assigned_device else self.default_device

    def find_device(self, name: str) -> DeviceBase:
        """A device by its full or partial name."""
        return self.devices.find(name)

    def functions(self, library: FunctionLibraryDefinition) -> FunctionRuntime:
        """The functions of a library as this engine runs them."""
        known = self._functions.get(id(library))  # the runtime holds the library, so the number stays its own
        if known is None:
            with self._lock:
                known = self._functions.setdefault(id(library), FunctionRuntime(self, library))
        return known

    def kernel(self, node: Node, *, keep: bool) -> OpKernel:
        """The kernel of a node; if `keep`, that of a stateful one is made once, so that its state lasts.

        Raises
        ------
        InvalidArgumentError
            There is no kernel for its types on its device.
        OpError
            What the kernel's constructor raised.
        """
        device = self.device_of(node)
        if not (keep and node.is_stateful):
            return self._make_kernel(node, device)
        key = (device.name, node.name)
        known = self._stateful.get(key)
        if known is None or known.type_string != node.op:
            made = self._make_kernel(node, device)
            with self._lock:
                known = self._stateful[key] = made
        return known

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
            )
        except NotFoundError as error:
            self._check_has_kernel(node, device)
            raise annotate(error, node) from None
        except Exception as error:
            raise annotate(error, node) from None

    def _check_has_kernel(self, node: Node, device: DeviceBase) -> None:
        """What a registry does not find makes a graph wrong: another code than for what a constructor does not find."""
        try:
            self.kernels.find(device.device_type, node.node_def)
        except NotFoundError as error:
            raise InvalidArgumentError(
                error.message, node=node.name, op=node.op, where=f"node '{node.name}' ({node.op})"
            ) from None

    def place(self, graph: Graph) -> Graph:
        """Run the passes around placement, and the placer, on a graph that may be changed."""
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

    def prepare(self, graph: Graph, *, keep_kernels: bool = True) -> Runner:
        """Make kernels and executors for a placed graph that may be changed.

        Parameters
        ----------
        graph : Graph
            What one run needs, or the body of a function.
        keep_kernels : bool
            Whether kernels with state are shared by all graphs of the engine, by the names of their nodes.
        """
        check_ends(graph)
        options = OptimizationPassOptions(graph, self, settings=self.settings)
        graph = self.passes.run(Grouping.POST_REWRITE_FOR_EXEC, options)
        split = partition(graph, self.devices)
        names, parts = list(split), [self._optimized(part, name) for name, part in split.items()]
        composed = [self._composed(part, name) for part, name in zip(parts, names, strict=True)]
        kernels = [self._kernels(part, keep_kernels) for part in composed]
        if len(parts) == 1 and is_flat(composed[0], kernels[0]):
            return Runner(parts, FlatExecutor(composed[0], kernels[0]))
        return Runner(parts, FrameExecutor(list(zip(composed, kernels, strict=True))))

    def _optimized(self, graph: Graph, device: str) -> Graph:
        options = OptimizationPassOptions(graph, self, device, self.settings)
        return self.passes.run(Grouping.POST_PARTITIONING, options) if self.optimize else graph

    def _composed(self, graph: Graph, device: str) -> Graph:
        options = OptimizationPassOptions(graph, self, device, self.settings)
        return self.passes.run(Grouping.COMPOSITION, options) if self.optimize else graph

    def _kernels(self, graph: Graph, keep: bool) -> dict[Node, OpKernel]:
        nodes = [node for node in graph.nodes.values() if node.op not in _WITHOUT_KERNEL]
        return {node: self.kernel(node, keep=keep) for node in nodes}

    def submit(self, work: Callable[[], object]) -> None:
        """Run a closure on the pool; at once where the caller is of the pool itself, which could wait for ever."""
        if getattr(_INSIDE, "pool", False) or self.threads < 2:
            work()
            return
        if self._pool is None:
            with self._lock:
                if self._closed:
                    raise FailedPreconditionError("the session is closed")
                self._pool = self._pool or ThreadPoolExecutor(self.threads, "cyxla", _mark_inside)
        self._pool.submit(work)

    def _forget_threads(self) -> None:
        self._pool = None  # a forked child has none of its threads

    def close(self) -> None:
        """Drop resources, kernels and threads."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
            self._stateful.clear()
        if pool is not None:
            pool.shutdown(wait=False)
        self.resource_manager.clear()


def _mark_inside() -> None:
    _INSIDE.pool = True


def check_ends(graph: Graph) -> None:
    """Check that arguments and results are numbered from 0, each number once.

    Raises
    ------
    InvalidArgumentError
        They are not.
    """
    for op in ("_Arg", "_Retval"):
        found = sorted(node.attr("index") for node in graph.nodes.values() if node.op == op)
        if found != list(range(len(found))):
            raise InvalidArgumentError(f"the {op} nodes of a graph are numbered {found}", hint="count from 0")


class Runner:
    """A prepared graph.

    Attributes
    ----------
    parts : list of Graph
        As they are run, after all rewriting; one for each device.
    """

    def __init__(self, parts: list[Graph], executor: FlatExecutor | FrameExecutor) -> None:
        self.parts, self.executor = parts, executor

    def run(self, step: StepContext, args: Sequence[Array]) -> list[Any]:
        """The values of the ``_Retval`` nodes in order."""
        return self.executor.run(step, args)
