"""Kernels: the code of an op on a device.

A kernel is constructed once, before the first step, from an `OpKernelConstruction`; its `compute` may then run in any
number of steps at once. `kernel_decorators` has the short forms.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from cyxla.core.framework.device_base import DeviceBase
from cyxla.core.framework.environment.env import Env
from cyxla.core.framework.environment.file_access import UNLIMITED, FileAccess
from cyxla.core.framework.kernel_def import KernelDef, MemoryType
from cyxla.core.framework.memory.allocators import ANY_MEMORY, Allocator, AllocatorAttributes
from cyxla.core.framework.node_properties import NodeProperties
from cyxla.core.framework.resource_mgr import ResourceMgr
from cyxla.core.framework.step.failure_log import caller_line, log_failure
from cyxla.core.framework.types import as_data_type
from cyxla.errors import (
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)

if TYPE_CHECKING:
    from cyxla.core.framework.op_kernel_context import OpKernelContext

Array = np.ndarray[Any, Any]
Done = Callable[[], None]
Factory = Callable[["OpKernelConstruction"], "OpKernel"]
F = TypeVar("F", bound=Callable[..., Any])


class OpKernelConstruction:
    """Argument of kernel constructors.

    Attributes
    ----------
    device : DeviceBase
    props : NodeProperties
        Attributes, types and ranges of the node.
    function_library
        Runtime that instantiates functions; None outside of a session.
    graph_def_version : int
        Producer version of the graph.
    memory_types : tuple of two tuples of MemoryType
        Memory types of the inputs and of the outputs.
    file_access : FileAccess
        Files that the graph may access; see `env`.
    """

    def __init__(
        self,
        device: DeviceBase,
        props: NodeProperties,
        *,
        kernel_def: KernelDef | None = None,
        function_library: Any = None,
        graph_def_version: int = 0,
        memory_types: tuple[tuple[MemoryType, ...], tuple[MemoryType, ...]] | None = None,
        file_access: FileAccess = UNLIMITED,
    ) -> None:
        self.device, self.props, self.kernel_def = device, props, kernel_def
        self.function_library, self.graph_def_version = function_library, graph_def_version
        self.file_access = file_access
        on_device = MemoryType.DEVICE
        self.memory_types = memory_types or (
            (on_device,) * len(props.input_types),
            (on_device,) * len(props.output_types),
        )
        self.status: OpError | None = None
        self.persistent_bytes = 0

    @property
    def device_type(self) -> str:
        """Type of the device, such as ``"CPU"``."""
        return self.device.device_type

    @property
    def resource_manager(self) -> ResourceMgr:
        """Resources of the device."""
        return self.device.resource_manager

    @property
    def env(self) -> Env:
        """Files that the graph may access, clock and threads."""
        return Env(self.file_access, self.props.node_def.op)

    def has_attr(self, name: str) -> bool:
        """Return True if the node has an attribute."""
        return name in self.props.attrs

    def get_attr(self, name: str, kind: str = "") -> Any:
        """Return the value of an attribute, checked to be of a kind (``"int"``, ``"list(type)"``) if one is given.

        Raises
        ------
        NotFoundError
            The node does not have the attribute.
        InvalidArgumentError
            The attribute is of another kind.
        """
        attr = self.props.node_def.attr.get(name)
        if attr is None:
            raise NotFoundError(
                f"No attr named '{name}' in NodeDef", where=self._where(), hint="declare it, or give it a default"
            )
        if kind and attr.kind != kind and not (attr.kind == "list" and kind.startswith("list")):
            raise InvalidArgumentError(f"attr '{name}' is of kind {attr.kind}, not {kind}", where=self._where())
        return attr.value

    def match_signature(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Check the types of the node's inputs and outputs against those supported by the kernel.

        Raises
        ------
        InvalidArgumentError
            The types differ.
        """
        check_signature(self.props, inputs, outputs, self._where())

    def set_status(self, error: OpError) -> None:
        """Fail the construction with an error, located at the line of the caller; the first error is kept."""
        if self.status is None:
            error.where = error.where or f"{self._where()}, {caller_line(1)}"
            self.status = error

    def ctx_failure(self, error: OpError) -> None:
        """Fail the construction, and log the error for debugging."""
        log_failure(error, caller_line(1), warning=False)
        error.where = error.where or f"{self._where()}, {caller_line(1)}"
        self.set_status(error)

    def ctx_failure_with_warning(self, error: OpError) -> None:
        """Fail the construction, and log the error as a warning."""
        log_failure(error, caller_line(1), warning=True)
        error.where = error.where or f"{self._where()}, {caller_line(1)}"
        self.set_status(error)

    def require(self, cond: object, message: str, error: type[OpError] = InvalidArgumentError, hint: str = "") -> None:
        """Raise `error` with the node's name unless the condition holds."""
        if not cond:
            raise error(message, where=self._where(), hint=hint)

    def get_allocator(self, attributes: AllocatorAttributes = ANY_MEMORY) -> Allocator:
        """Return the allocator of the device for memory with some attributes."""
        return self.device.get_allocator(attributes)

    def allocate_temp(self, dtype: Any, shape: Sequence[int], attributes: AllocatorAttributes = ANY_MEMORY) -> Array:
        """Allocate memory that the kernel keeps; it is counted as persistent."""
        array = self.get_allocator(attributes).allocate(as_data_type(dtype).numpy, shape)
        self.persistent_bytes += array.nbytes
        return array

    def _where(self) -> str:
        return f"node '{self.props.node_def.name}' ({self.props.node_def.op})"


def check_signature(props: NodeProperties, inputs: Sequence[Any], outputs: Sequence[Any], where: str) -> None:
    """Check the types of a node's inputs and outputs."""
    expected = tuple(map(as_data_type, inputs)), tuple(map(as_data_type, outputs))
    found = props.input_types, props.output_types
    if expected != found:
        texts = ["->".join(",".join(map(str, types)) for types in signature) for signature in (found, expected)]
        raise InvalidArgumentError(f"the node is {texts[0]}, the kernel is for {texts[1]}", where=where)


class OpKernel:
    """Base class of kernels. Subclasses read attributes in their constructor and override `compute`.

    Attributes
    ----------
    array_fn : callable or None
        Function of a kernel that is pure: it takes the inputs as arguments and returns the output, or a sequence of
        outputs unless there is exactly one. Outputs may be NumPy scalars, which the caller converts to 0-d arrays.
    const_tensor : ndarray or None
        Value of a kernel that is a constant.
    is_expensive : bool
        True if the kernel is worth a thread of the pool.
    is_deferred : bool
        True if work of the kernel may go on after it has returned; it then uses the counter of deferred operations of
        its context.
    """

    array_fn: Callable[..., Any] | None = None
    const_tensor: Array | None = None
    is_async: ClassVar[bool] = False
    is_expensive: bool = False
    is_deferred: ClassVar[bool] = False

    def __init__(self, construction: OpKernelConstruction, node_def: Any = None) -> None:
        props = construction.props
        if node_def is not None:  # a smaller one, without what the kernel has read from it
            props = replace(props, node_def=node_def, attrs={name: a.value for name, a in node_def.attr.items()})
        self.props, self.device = props, construction.device
        self.name, self.type_string = props.node_def.name, props.node_def.op
        self.attrs = props.attrs
        self.input_types, self.output_types = props.input_types, props.output_types
        self.input_memory_types, self.output_memory_types = construction.memory_types
        self.graph_def_version = construction.graph_def_version
        self.output_dtypes = tuple(None if t.is_ref else t.numpy for t in props.output_types)

    def compute(self, ctx: OpKernelContext) -> None:
        """Compute the outputs from the inputs of the context. Must be thread-safe."""
        raise UnimplementedError(f"{type(self).__name__} does not implement compute")

    @property
    def node_def(self) -> Any:
        """Definition of the kernel's node."""
        return self.props.node_def

    @property
    def requested_inputs(self) -> list[str]:
        """Names of the node's inputs."""
        return list(self.props.node_def.input)

    @property
    def requested_device(self) -> str:
        """Device requested by the node."""
        return str(self.props.node_def.device)

    def input_range(self, name: str) -> range:
        """Return the indices of the values of an input."""
        return _range(self.props.input_ranges, name, "input", self)

    def output_range(self, name: str) -> range:
        """Return the indices of the values of an output."""
        return _range(self.props.output_ranges, name, "output", self)

    def as_async(self) -> AsyncOpKernel | None:
        """Return the kernel if it is asynchronous, else None."""
        return None

    def trace_string(self, ctx: OpKernelContext | None = None) -> str:
        """Return ``name:op`` for profiles, with the shapes of the inputs if a context is given."""
        text = f"{self.name}:{self.type_string}"
        if ctx is None:
            return text
        arrays = [ctx.input(i) if ctx.has_input(i) else None for i in range(ctx.num_inputs)]
        shapes = ["" if a is None else "x".join(map(str, a.shape)) or "scalar" for a in arrays]
        return f"{text}#shape=({';'.join(shapes)})#"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} ({self.type_string})>"


def _range(ranges: dict[str, range], name: str, kind: str, kernel: OpKernel) -> range:
    try:
        return ranges[name]
    except KeyError:
        names = ", ".join(ranges) or "none"
        raise InvalidArgumentError(
            f"unknown {kind} name '{name}': {kernel.type_string} has {names}", where=f"node '{kernel.name}'"
        ) from None


class AsyncOpKernel(OpKernel):
    """Base class of asynchronous kernels, which return at once and call `done` exactly once later."""

    is_async = True

    def compute_async(self, ctx: OpKernelContext, done: Done) -> None:
        """Start the computation; on completion, set the outputs or the status and call `done`."""
        raise UnimplementedError(f"{type(self).__name__} does not implement compute_async")

    def start(self, ctx: OpKernelContext, done: Done) -> None:
        """Start with a `done` that can be called only once; an exception that escapes becomes the status."""
        once = _Once(done, self)
        try:
            self.compute_async(ctx, once)
        except Exception as error:
            ctx.set_status(located(error, self))
            once.end()

    def compute(self, ctx: OpKernelContext) -> None:
        """Start the computation and wait for its completion."""
        ended, deadline = Event(), ctx.step.deadline
        self.start(ctx, ended.set)
        if deadline is not None and not ended.wait(max(deadline - monotonic(), 0.0)):
            ctx.cancellation_manager.start_cancel()
            ended.wait()
            ctx.status = None  # cancelled because of the deadline
            ctx.step.check_running()
        ended.wait()
        if ctx.status is not None:
            raise ctx.status

    def as_async(self) -> AsyncOpKernel | None:
        """Return the kernel."""
        return self


class _Once:
    """Callback that can be called only once."""

    __slots__ = ("_calls", "_done", "_kernel")

    def __init__(self, done: Done, kernel: OpKernel) -> None:
        self._done, self._kernel, self._calls = done, kernel, count()

    def end(self) -> None:
        """Call the callback unless it was called."""
        if not next(self._calls):
            self._done()

    def __call__(self) -> None:
        if next(self._calls):  # one bytecode step, hence atomic: a single thread is first
            raise InternalError(
                "done was called twice",
                node=self._kernel.name,
                op=self._kernel.type_string,
                where=_node_text(self._kernel),
            )
        self._done()


def run_kernel(kernel: OpKernel, ctx: OpKernelContext) -> list[Any]:
    """Run a kernel and return its outputs.

    Raises
    ------
    OpError
        The kernel raised or set this error; it carries the node's name and the source line of the check.
    InternalError
        The kernel did not set a required output.
    """
    try:
        kernel.compute(ctx)
    except Exception as error:
        ctx.set_status(located(error, kernel))
    return ctx.take_outputs()


def located(error: BaseException, kernel: OpKernel) -> OpError:
    """Return an error with the node it came from; other exceptions are converted to the nearest `OpError`."""
    if not isinstance(error, OpError):
        error = _convert_error(error, kernel)
    if error.node is None:
        error.node, error.op = kernel.name, kernel.type_string
    if not error.where:
        error.where = _node_text(kernel) + source_line(error)
    return error


def _convert_error(error: BaseException, kernel: OpKernel) -> OpError:
    if isinstance(error, MemoryError):
        converted: OpError = ResourceExhaustedError(f"{kernel.type_string}: out of memory: {error}")
    else:
        converted = InternalError(f"{kernel.type_string} failed with {type(error).__name__}: {error}")
    converted.__cause__, converted.__traceback__ = error, error.__traceback__
    return converted


def _node_text(kernel: OpKernel) -> str:
    return f"node '{kernel.name}' ({kernel.type_string})"


_PLUMBING = ("op_kernel.py", "op_kernel_context.py", "kernel_registry.py")


def source_line(error: BaseException) -> str:
    """Return the line of the kernel's source that raised an error."""
    frames = traceback.extract_tb(error.__traceback__)
    locations = [
        f"{name}:{frame.lineno}" for frame in frames if (name := frame.filename.rpartition("/")[2]) not in _PLUMBING
    ]
    return f", {locations[-1]}" if locations else ""


def op_requires(cond: object, error: OpError) -> None:
    """Raise `error` unless the condition holds, and log it for debugging."""
    if not cond:
        log_failure(error, caller_line(1), warning=False)
        raise error


def op_requires_ok(error: OpError | None) -> None:
    """Raise an error, if there is one, and log it as a warning."""
    if error is not None:
        log_failure(error, caller_line(1), warning=True)
        raise error


def op_requires_async(ctx: OpKernelContext, cond: object, error: OpError, done: Done) -> bool:
    """Return True if the condition holds; else set `error` as status and call `done`, and the caller must return."""
    if not cond:
        log_failure(error, caller_line(1), warning=False)
        ctx.set_status(located(error, ctx.op_kernel))
        done()
    return bool(cond)


def op_requires_ok_async(ctx: OpKernelContext, error: OpError | None, done: Done) -> bool:
    """Return True without an error; else log it as a warning, set it as status and call `done`: the caller returns."""
    if error is None:
        return True
    log_failure(error, caller_line(1), warning=True)
    ctx.set_status(located(error, ctx.op_kernel))
    done()
    return False


class FunctionKernel(OpKernel):
    """Kernel whose `compute` is a plain function of the context."""

    def __init__(self, construction: OpKernelConstruction, function: Callable[[OpKernelContext], object]) -> None:
        super().__init__(construction)
        self.compute = function  # type: ignore[assignment]


class ArrayKernel(OpKernel):
    """Kernel that is a pure function of arrays; see `array_kernel`."""

    array_fn: Callable[..., Any]

    def __init__(
        self, construction: OpKernelConstruction, function: Callable[..., Any], attrs: tuple[str, ...]
    ) -> None:
        super().__init__(construction)
        props = construction.props
        array_fn = partial(function, **{name: construction.get_attr(name) for name in attrs}) if attrs else function
        if props.input_lists:
            array_fn = partial(_call_with_groups, array_fn, _input_groups(props.input_ranges, props.input_lists))
        if props.output_lists:
            array_fn = partial(_call_flattened, array_fn, props)
        self.array_fn = array_fn

    def compute(self, ctx: OpKernelContext) -> None:
        """Call the function and set its results."""
        results = self.array_fn(*(ctx.input(i) for i in range(ctx.num_inputs)))
        if len(self.output_types) == 1:
            ctx.set_output(0, results)
            return
        if len(results) != len(self.output_types):
            raise InternalError(f"{len(results)} results for {len(self.output_types)} outputs")
        for i, value in enumerate(results):
            ctx.set_output(i, value)


def _input_groups(ranges: dict[str, range], lists: frozenset[str]) -> tuple[int | slice, ...]:
    return tuple(slice(r.start, r.stop) if name in lists else r.start for name, r in ranges.items())


def _call_with_groups(function: Callable[..., Any], groups: tuple[int | slice, ...], *inputs: Array) -> Any:
    """Call a function with list inputs grouped into lists."""
    return function(*(list(inputs[g]) if isinstance(g, slice) else inputs[g] for g in groups))


def _call_flattened(function: Callable[..., Any], props: NodeProperties, *inputs: Array) -> Any:
    """Call a function and flatten its outputs; a single output is returned as such."""
    results = function(*inputs)
    if len(props.output_ranges) > 1:
        pairs = zip(props.output_ranges, results, strict=True)
        results = [v for name, r in pairs for v in (r if name in props.output_lists else (r,))]
    return results[0] if len(props.output_types) == 1 and len(results) == 1 else results
