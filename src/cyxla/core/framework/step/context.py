"""Context of a step, shared by its kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any

from cyxla.core.framework.environment.file_access import UNLIMITED, FileAccess
from cyxla.core.framework.resource_mgr import ResourceMgr, ScopedStepContainer
from cyxla.core.framework.step.cancellation import CancellationManager
from cyxla.core.framework.step.collectives import CollectiveExecutor
from cyxla.core.framework.step.deferred_ops import DeferredOps
from cyxla.core.framework.step.session_state import SessionMetadata, SessionState, TensorStore
from cyxla.errors import CancelledError, DeadlineExceededError
from cyxla.forking import new_lock

if TYPE_CHECKING:
    from cyxla.core.framework.step.rendezvous import Rendezvous

_STEP_IDS = count(1)
_CREATING = new_lock()
GRACE = 10.0  # seconds after its deadline that a step waits for kernels that still run


class StepContext:
    """Identity, limits and services of one step, created once for each step.

    Parameters
    ----------
    resource_manager : ResourceMgr, optional
        Manager of resources that outlive the step; a new one by default.
    rendezvous : Rendezvous, optional
        Rendezvous for values sent between devices.
    cancellation_manager : CancellationManager, optional
        Cancellation manager; created on first use by default.
    function_library : FunctionRuntime, optional
        Runtime that instantiates and runs functions; see `OpKernelContext.call_function`.
    runner : callable, optional
        Function that runs a closure on the pool; by default closures run at once.
    deadline : float, optional
        Time of `time.monotonic` after which the step fails.
    stats_collector : optional
        Receiver of the start and end of every kernel.
    memory_limit : int, optional
        Maximum number of bytes allocated by `allocate_output` and `allocate_temp` in the step.
    track_allocations : bool
        True to record the allocations of kernels.
    session_state : SessionState, optional
        Tensors that the session keeps between runs.
    session_metadata : SessionMetadata, optional
        Name and version of the session.
    executor_type : str
        Name of the executor that runs functions; empty for the default.
    run_all_kernels_inline : bool
        True to run all kernels on the thread of the step.
    graph_collector : list, optional
        List to which functions that are called add their graphs.
    file_access : FileAccess
        Files that kernels may access.
    """

    __slots__ = (
        "_cancellation",
        "_collective_executor",
        "_container",
        "_deferred_ops",
        "_tensor_store",
        "allocated",
        "deadline",
        "executor_type",
        "file_access",
        "function_library",
        "graph_collector",
        "memory_limit",
        "rendezvous",
        "resource_manager",
        "run_all_kernels_inline",
        "runner",
        "session_metadata",
        "session_state",
        "start_time",
        "stats_collector",
        "step_id",
        "track_allocations",
    )

    def __init__(
        self,
        resource_manager: ResourceMgr | None = None,
        rendezvous: Rendezvous | None = None,
        cancellation_manager: CancellationManager | None = None,
        function_library: Any = None,
        runner: Callable[[Callable[[], object]], object] | None = None,
        *,
        step_id: int | None = None,
        deadline: float | None = None,
        stats_collector: Any = None,
        memory_limit: int | None = None,
        track_allocations: bool = False,
        session_state: SessionState | None = None,
        session_metadata: SessionMetadata | None = None,
        executor_type: str = "",
        run_all_kernels_inline: bool = False,
        graph_collector: list[Any] | None = None,
        file_access: FileAccess = UNLIMITED,
    ) -> None:
        self.step_id = next(_STEP_IDS) if step_id is None else step_id
        self.start_time, self.deadline = monotonic(), deadline
        self.resource_manager = ResourceMgr() if resource_manager is None else resource_manager
        self.rendezvous, self._cancellation = rendezvous, cancellation_manager
        self.function_library = function_library
        self.runner = runner or _run_inline
        self.stats_collector, self.track_allocations = stats_collector, track_allocations
        self.memory_limit, self.allocated = memory_limit, 0
        self.session_state, self.session_metadata = session_state, session_metadata
        self._tensor_store: TensorStore | None = None
        self._collective_executor: CollectiveExecutor | None = None
        self.executor_type, self.run_all_kernels_inline = executor_type, run_all_kernels_inline
        self.file_access, self.graph_collector = file_access, graph_collector
        self._deferred_ops: DeferredOps | None = None
        self._container: ScopedStepContainer | None = None

    @property
    def step_container(self) -> ScopedStepContainer:
        """Container of resources that are deleted at the end of the step; created on first use."""
        if self._container is None:
            self._container = ScopedStepContainer(self.step_id, self.resource_manager)
        return self._container

    @property
    def cancellation_manager(self) -> CancellationManager:
        """Cancellation manager of the step."""
        if self._cancellation is None:
            self._cancellation = CancellationManager()
        return self._cancellation

    @property
    def tensor_store(self) -> TensorStore:
        """Tensors that kernels of the step ask the session to keep; created on first use."""
        if self._tensor_store is None:
            with _CREATING:
                self._tensor_store = self._tensor_store or TensorStore()
        return self._tensor_store

    @property
    def collective_executor(self) -> CollectiveExecutor:
        """Executor of operations across the devices of the step; created on first use."""
        if self._collective_executor is None:
            with _CREATING:
                self._collective_executor = self._collective_executor or CollectiveExecutor()
        return self._collective_executor

    @property
    def deferred_ops(self) -> DeferredOps:
        """Counter of operations that go on after their kernels have returned; created on first use."""
        if self._deferred_ops is None:
            with _CREATING:
                self._deferred_ops = self._deferred_ops or DeferredOps()
        return self._deferred_ops

    def wait_for_deferred_ops(self) -> None:
        """Wait for operations that go on after their kernels have returned.

        Raises
        ------
        DeadlineExceededError
            They did not end within the grace period after the deadline of the step.
        """
        if self._deferred_ops is not None:
            left = None if self.deadline is None else max(self.deadline - monotonic(), 0.0) + GRACE
            self._deferred_ops.wait(left)

    def save_tensors(self, names: Iterable[str]) -> None:
        """Pass the tensors whose handles were fetched to the session; called after a run that succeeded."""
        if self._tensor_store is not None and self.session_state is not None:
            self._tensor_store.save_tensors(names, self.session_state)

    def check_running(self) -> None:
        """Raise if the step was cancelled or has exceeded its deadline.

        Raises
        ------
        CancelledError, DeadlineExceededError
            The step was cancelled, or its deadline has passed.
        """
        if self.deadline is not None and monotonic() > self.deadline:
            raise DeadlineExceededError("the step did not end before its deadline", hint="allow more time")
        manager = self._cancellation
        if manager is not None and (manager.is_cancelling or manager.is_cancelled):
            raise CancelledError("the step was cancelled")

    def close(self) -> None:
        """Delete the resources of the step; called by the executor when all kernels have ended."""
        if self._container is not None:
            self._container.close()


def _run_inline(closure: Callable[[], object]) -> None:
    closure()
