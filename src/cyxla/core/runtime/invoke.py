"""Calls of kernels, for both executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import monotonic, perf_counter
from typing import Any

import numpy as np

from cyxla.core.framework.memory.allocation_record import Allocation
from cyxla.core.framework.op_kernel import OpKernel, run_kernel
from cyxla.core.framework.op_kernel_context import NEVER_FORWARD, NO_RESERVATION, OpKernelContext
from cyxla.core.framework.step.context import StepContext
from cyxla.core.framework.variable import Ref
from cyxla.core.graph.graph import Node
from cyxla.errors import (
    FailedPreconditionError,
    InternalError,
    OpError,
    ResourceExhaustedError,
)

Array = np.ndarray[Any, Any]
Position = tuple[tuple[str, int], bool]  # frame and iteration of a loop, and True if an input is dead
Report = Callable[[list[Any] | None, BaseException | None], None]
_NO_LOOP: Position = (("", 0), False)


class KernelCall:
    """A node with its kernel, which can be called with inputs.

    Attributes
    ----------
    derefs : tuple of int
        Indices of inputs that are references to variables but are passed as values.
    constant : ndarray or None
        Value of a constant node.

    Parameters
    ----------
    last_use : sequence of bool
        True for each input that is dead after the call.
    required : sequence of bool
        True for each output that has readers; all outputs are required if it is empty.
    """

    __slots__ = (
        "_forward_from",
        "_last_use",
        "_required",
        "_single",
        "constant",
        "derefs",
        "is_async",
        "is_expensive",
        "kernel",
        "node",
    )

    def __init__(
        self, node: Node, kernel: OpKernel, last_use: Sequence[bool] = (), required: Sequence[bool] = ()
    ) -> None:
        self.node, self.kernel = node, kernel
        self.is_async, self.is_expensive = kernel.is_async, kernel.is_expensive
        self.constant = kernel.const_tensor
        self.derefs = tuple(k for k, t in enumerate(node.inputs) if t.dtype.is_ref and not kernel.input_types[k].is_ref)
        self._single = len(kernel.output_types) == 1
        self._last_use, self._required = tuple(last_use), tuple(required)
        self._forward_from = _reservations(node)

    def __call__(
        self, step: StepContext, inputs: list[Any], position: Position = _NO_LOOP, *, scheduled: bool = False
    ) -> list[Any]:
        """Run the node, and return its outputs; None for an output that is dead or not required."""
        if step.stats_collector is not None:
            return self._run_measured(step, inputs, position, scheduled)
        return self._run(step, inputs, position)[0]

    def on_arrays(self) -> Callable[..., Any] | None:
        """Return the function of arrays that computes the only output; None if the node has no such function."""
        fn, single = self.kernel.array_fn, self._single
        if fn is None or not single or self.derefs:
            return None
        (dtype,) = self.kernel.output_dtypes
        return lambda *inputs: as_output(fn(*inputs), dtype)

    def _run_measured(self, step: StepContext, inputs: list[Any], position: Position, scheduled: bool) -> list[Any]:
        began = perf_counter()
        outputs, allocations = self._run(step, inputs, position)
        step.stats_collector.record(
            self.node, began, perf_counter(), inputs, outputs, scheduled=scheduled, allocations=allocations
        )
        return outputs

    def _run(self, step: StepContext, inputs: list[Any], position: Position) -> tuple[list[Any], Sequence[Allocation]]:
        """Run the node, and return its outputs and the allocations of the kernel."""
        if self.derefs:
            inputs = self.dereference(inputs)
        fn = self.kernel.array_fn
        if fn is None:
            ctx = self._context(step, inputs, position)
            return run_kernel(self.kernel, ctx), ctx.allocations or ()
        result = fn(*inputs)
        results = [result] if self._single else result
        return [as_output(r, d) for r, d in zip(results, self.kernel.output_dtypes, strict=True)], ()

    def start(self, step: StepContext, inputs: list[Any], position: Position, report: Report) -> None:
        """Start an asynchronous kernel, which reports its outputs or its error once, from any thread."""
        began = perf_counter()
        try:
            ctx = self._context(step, self.dereference(inputs), position)
        except OpError as error:
            report(None, error)
            return

        def done() -> None:
            try:
                outputs = ctx.take_outputs()
            except BaseException as error:
                report(None, error)
                return
            if step.stats_collector is not None:
                step.stats_collector.record(self.node, began, perf_counter(), inputs, outputs, scheduled=True)
            report(outputs, None)

        self.kernel.start(ctx, done)  # type: ignore[attr-defined]

    def _context(self, step: StepContext, inputs: list[Any], position: Position) -> OpKernelContext:
        return OpKernelContext(
            step,
            self.kernel,
            inputs,
            last_use=self._last_use,
            required=self._required,
            frame_iter=position[0],
            is_input_dead=position[1],
            forward_from=self._forward_from,
        )

    def dereference(self, inputs: list[Any]) -> list[Any]:
        """Return the inputs, with references to variables replaced by values if the node takes values."""
        inputs = list(inputs)
        for k in self.derefs:
            ref = inputs[k]
            if isinstance(ref, Ref):
                inputs[k] = ref.read()
                if inputs[k] is None and not self.node.op_def.allows_uninitialized_input:
                    raise FailedPreconditionError(
                        f"the variable {self.node.inputs[k].node.name} has no value yet",
                        hint="run its initializer first",
                    )
        return inputs


def _reservations(node: Node) -> tuple[int, ...]:
    """Return for each output the input that its node reserves for it; empty if there are no reservations."""
    attrs = node.attrs
    if "_forward_input" not in attrs and "_scoped_allocator" not in attrs:
        return ()
    forward, scoped = (attrs[name].value if name in attrs else () for name in ("_forward_input", "_scoped_allocator"))
    reserved = dict(zip(forward[1::2], forward[::2], strict=False))
    reserved.update(dict.fromkeys(scoped[::2], NEVER_FORWARD))
    return tuple(reserved.get(k, NO_RESERVATION) for k in range(len(node.output_types)))


def required_outputs(nodes: Iterable[Node]) -> dict[Node, tuple[bool, ...]]:
    """Return a bool for each output of nodes, True if it has readers; nodes with readers of all outputs are omitted."""
    nodes = list(nodes)
    read = {(t.node, t.index) for node in nodes for t in node.inputs}
    flags = {node: tuple((node, k) in read for k in range(len(node.output_types))) for node in nodes}
    return {node: required for node, required in flags.items() if not all(required)}


def as_output(value: Any, dtype: np.dtype[Any] | None) -> Any:
    """Return a kernel's result as an array of the declared type; NumPy scalars become arrays of rank 0.

    Raises
    ------
    InternalError
        The result has another type, which is a bug of the kernel.
    """
    if dtype is None:
        return value
    if type(value) is not np.ndarray:
        value = _as_array(value, dtype)
    if value.dtype != dtype:
        raise InternalError(f"the kernel returned {value.dtype}, but its output is declared as {dtype}")
    return value


def _as_array(value: Any, dtype: np.dtype[Any]) -> Array:
    if dtype.hasobject:
        array = np.empty((), object)
        array[()] = value
        return array
    return np.asarray(value)


def annotate(error: BaseException, node: Node | None) -> OpError:
    """Add the name of its node to an error; convert errors of other classes to `OpError`."""
    annotated = error if isinstance(error, OpError) else _convert_error(error, node)
    if node is not None and annotated.node is None:
        annotated.node, annotated.op = node.name, node.op
    if node is not None and not annotated.where:
        annotated.where = f"node '{node.name}' ({node.op})"
    return annotated


def _convert_error(error: BaseException, node: Node | None) -> OpError:
    failure = "the step failed" if node is None else f"{node.op} failed"
    kind = ResourceExhaustedError if isinstance(error, (MemoryError, RecursionError)) else InternalError
    converted: OpError = kind(f"{failure} with {type(error).__name__}: {error}")
    converted.__cause__ = error
    return converted


class StepDeadline:
    """The deadline of a step, and the grace period of kernels that still run when it has failed."""

    GRACE = 10.0  # seconds

    def __init__(self, step: StepContext) -> None:
        self._step, self._end = step, step.deadline
        self.failed = False

    def remaining(self) -> float | None:
        """Return the remaining time in seconds, or None without a limit."""
        return None if self._end is None else max(self._end - monotonic(), 0.0) + 1e-3

    def check(self) -> None:
        """Raise if the deadline has expired or the step was cancelled."""
        if not self.failed:
            self._step.check_running()

    def fail(self) -> None:
        """Mark the step as failed, and limit the remaining time to the grace period."""
        self.failed, self._end = True, monotonic() + self.GRACE
