"""Services of the step and of the session that a kernel reaches through its context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.resource_mgr import ResourceMgr, ScopedStepContainer
from cyxla.core.framework.step.cancellation import CancellationManager
from cyxla.core.framework.step.collectives import CollectiveExecutor
from cyxla.core.framework.step.context import StepContext
from cyxla.core.framework.step.session_state import SessionMetadata, SessionState, TensorStore


class StepServices:
    """Accessors of a step's services; mixin of contexts of kernels.

    Attributes
    ----------
    step : StepContext
        State shared by all kernels of the step.
    """

    __slots__ = ()
    step: StepContext

    @property
    def step_id(self) -> int:
        """Number of the step, unique in the session."""
        return self.step.step_id

    @property
    def start_time(self) -> float:
        """Time of `time.monotonic` at the start of the step."""
        return self.step.start_time

    @property
    def deadline(self) -> float | None:
        """Time of `time.monotonic` after which the step fails, or None."""
        return self.step.deadline

    @property
    def resource_manager(self) -> ResourceMgr:
        """Manager of named resources that outlive the step."""
        return self.step.resource_manager

    @property
    def step_container(self) -> ScopedStepContainer:
        """Container of resources that are deleted at the end of the step."""
        return self.step.step_container

    @property
    def rendezvous(self) -> Any:
        """Rendezvous for values sent between devices."""
        return self.step.rendezvous

    @property
    def cancellation_manager(self) -> CancellationManager:
        """Cancellation manager, with which waiting kernels register callbacks."""
        return self.step.cancellation_manager

    @property
    def session_state(self) -> SessionState | None:
        """Tensors that the session keeps between runs; None outside of a session."""
        return self.step.session_state

    @property
    def tensor_store(self) -> TensorStore:
        """Tensors of this step that the session is asked to keep."""
        return self.step.tensor_store

    @property
    def session_metadata(self) -> SessionMetadata | None:
        """Name and version of the session, if it has them."""
        return self.step.session_metadata

    @property
    def collective_executor(self) -> CollectiveExecutor:
        """Executor of operations across the devices of the step."""
        return self.step.collective_executor

    def inc_num_deferred_ops(self) -> None:
        """Count an operation of the kernel that goes on after it has returned; the step waits for its end."""
        self.step.deferred_ops.increment()

    def dec_num_deferred_ops(self) -> None:
        """Count the end of such an operation."""
        self.step.deferred_ops.decrement()

    @property
    def graph_collector(self) -> list[Any] | None:
        """List of the graphs of the functions that the step calls; None unless they are asked for."""
        return self.step.graph_collector

    @property
    def stats_collector(self) -> Any:
        """Receiver of the start and end of every kernel, or None."""
        return self.step.stats_collector

    @property
    def executor_type(self) -> str:
        """Name of the executor that runs the functions called by kernels; empty for the default."""
        return self.step.executor_type

    @property
    def run_all_kernels_inline(self) -> bool:
        """True if no kernel may run on another thread than that of the step."""
        return self.step.run_all_kernels_inline

    @property
    def function_library(self) -> Any:
        """Runtime that instantiates and runs functions."""
        return self.step.function_library

    def call_function(self, handle: Any, args: Sequence[Any]) -> list[Any]:
        """Run an instantiated function in this thread, as part of this step, and return its results."""
        results: list[Any] = self.step.function_library.run(handle, args, self.step)
        return results

    def instantiate(self, function: NameAttrList, executor_type: str = "") -> Any:
        """Instantiate a function for the executor of a name; return a handle for `call_function`."""
        return self.step.function_library.instantiate(function, executor_type)
