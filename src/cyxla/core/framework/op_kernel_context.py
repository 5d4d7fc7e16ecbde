"""Context of a running kernel: its inputs, its outputs, and the services of the step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from sys import getrefcount
from typing import Any, TypeVar

import numpy as np

from cyxla.core.framework.device_base import DeviceBase
from cyxla.core.framework.environment.env import Env
from cyxla.core.framework.kernel_def import MemoryType
from cyxla.core.framework.memory.allocation_record import Allocation, AllocationRecord
from cyxla.core.framework.memory.allocators import ANY_MEMORY, HOST_MEMORY, Allocator, AllocatorAttributes
from cyxla.core.framework.node_def import STACK_TRACE_ATTR
from cyxla.core.framework.op_kernel import OpKernel, check_signature
from cyxla.core.framework.resource_mgr import (
    DEFAULT_CONTAINER,
    ResourceBase,
    ResourceHandle,
    type_name,
)
from cyxla.core.framework.step.context import StepContext
from cyxla.core.framework.step.failure_log import caller_line, log_failure
from cyxla.core.framework.step.services import StepServices
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType, as_data_type
from cyxla.core.framework.variable import Ref
from cyxla.errors import InternalError, InvalidArgumentError, NotFoundError, OpError, ResourceExhaustedError, ShapeError
from cyxla.memory import require

__all__ = ["OpKernelContext", "StepContext"]

Array = np.ndarray[Any, Any]
Key = int | str
R = TypeVar("R", bound=ResourceBase)
_HOLDERS = 3  # of an input that may be forwarded: the list of inputs, the executor, and getrefcount itself
NEVER_FORWARD, NO_RESERVATION = -2, -1  # instead of the input that an output reuses
_FEW_REFERENCES: tuple[bool, ...] = ()


class OpKernelContext(StepServices, AllocationRecord):
    """Context of one run of a kernel.

    Parameters
    ----------
    step : StepContext
        State shared by all kernels of the step.
    kernel : OpKernel
        Kernel that runs.
    inputs : sequence of ndarray, Ref or None
        Values; a `Ref` on reference edges, None for absent inputs (the other inputs of a Merge).
    last_use : sequence of bool
        True for inputs without later users in the schedule, which may be overwritten. The executor then holds one
        reference to each of them, besides `inputs`.
    required : sequence of bool
        True for outputs that have users; if empty, all have.
    frame_iter : tuple
        Frame and iteration of loops.
    is_input_dead : bool
        True if an input is dead; only transfer kernels run then.
    forward_from : sequence of int
        Index of the input reserved for each output, or -1 (`NO_RESERVATION`), or -2 (`NEVER_FORWARD`); empty if there
        are no reservations.
    """

    __slots__ = (
        "_forward_from",
        "_inputs",
        "_last_use",
        "_outputs",
        "_required",
        "allocations",
        "call_frame",
        "frame_iter",
        "is_input_dead",
        "op_kernel",
        "status",
        "step",
    )

    def __init__(
        self,
        step: StepContext,
        kernel: OpKernel,
        inputs: Sequence[Any],
        *,
        last_use: Sequence[bool] = _FEW_REFERENCES,
        required: Sequence[bool] = _FEW_REFERENCES,
        frame_iter: tuple[Any, int] = ("", 0),
        is_input_dead: bool = False,
        call_frame: Any = None,
        forward_from: Sequence[int] = (),
    ) -> None:
        self.step, self.op_kernel = step, kernel
        self._inputs, self._required, self._forward_from = inputs, required, forward_from
        # Counted before the kernel holds references: an array with other references has views, or is kept elsewhere
        self._last_use = last_use and [last and getrefcount(inputs[i]) <= _HOLDERS for i, last in enumerate(last_use)]
        self._outputs: list[Any] = [None] * len(kernel.output_types)
        self.status: OpError | None = None
        self.frame_iter, self.is_input_dead, self.call_frame = frame_iter, is_input_dead, call_frame
        self.allocations: list[Allocation] | None = [] if step.track_allocations else None

    # The node

    def attr(self, name: str) -> Any:
        """Return the value of an attribute of the node."""
        try:
            return self.op_kernel.attrs[name]
        except KeyError:
            raise NotFoundError(f"the node has no attr '{name}'", hint="declare it in the op") from None

    @property
    def device(self) -> DeviceBase:
        """Device that the kernel runs on."""
        return self.op_kernel.device

    @property
    def thread_pool(self) -> Any:
        """Thread pool for parallel work of the kernel, or None."""
        return self.op_kernel.device.thread_pool

    @property
    def num_inputs(self) -> int:
        """Number of inputs, lists flattened."""
        return len(self._inputs)

    @property
    def num_outputs(self) -> int:
        """Number of outputs, lists flattened."""
        return len(self._outputs)

    def input_dtype(self, key: Key) -> DataType:
        """Return the declared type of an input."""
        return self.op_kernel.input_types[self.input_index(key)]

    def expected_output_dtype(self, key: Key) -> DataType:
        """Return the declared type of an output."""
        return self.op_kernel.output_types[self.output_index(key)]

    def input_memory_type(self, key: Key) -> MemoryType:
        """Return the memory type, host or device, of an input."""
        return self.op_kernel.input_memory_types[self.input_index(key)]

    def output_memory_type(self, key: Key) -> MemoryType:
        """Return the memory type, host or device, of an output."""
        return self.op_kernel.output_memory_types[self.output_index(key)]

    def input_alloc_attr(self, key: Key) -> AllocatorAttributes:
        """Return the attributes of the memory of an input."""
        return HOST_MEMORY if self.input_memory_type(key) == MemoryType.HOST else ANY_MEMORY

    def output_alloc_attr(self, key: Key) -> AllocatorAttributes:
        """Return the attributes of the memory of an output."""
        return HOST_MEMORY if self.output_memory_type(key) == MemoryType.HOST else ANY_MEMORY

    def get_allocator(self, attributes: AllocatorAttributes = ANY_MEMORY) -> Allocator:
        """Return the allocator of the device for memory with some attributes."""
        return self.device.get_allocator(attributes)

    @property
    def op_device_context(self) -> Any:
        """Queue or stream of the device, or None."""
        return self.device.device_context

    @property
    def stack_trace(self) -> tuple[str, ...]:
        """Lines that created the node, innermost last; empty unless its graph records them."""
        trace: tuple[str, ...] = self.op_kernel.attrs.get(STACK_TRACE_ATTR, ())
        return trace

    def input_index(self, key: Key) -> int:
        """Return the index of an input; a name must refer to a single tensor."""
        if isinstance(key, int):
            return _check_index(key, len(self._inputs), "input")
        return _single_index(self.op_kernel.input_range(key), key, key in self.op_kernel.props.input_lists, "input")

    def output_index(self, key: Key) -> int:
        """Return the index of an output; a name must refer to a single tensor."""
        if isinstance(key, int):
            return _check_index(key, len(self._outputs), "output")
        return _single_index(self.op_kernel.output_range(key), key, key in self.op_kernel.props.output_lists, "output")

    @property
    def env(self) -> Env:
        """Files that the graph may access, clock and threads."""
        return Env(self.step.file_access, self.op_kernel.type_string)

    # Inputs

    def input(self, key: Key) -> Any:
        """Return the value of an input, which must not be modified; for a reference, its current value."""
        index = key if type(key) is int and 0 <= key < len(self._inputs) else self.input_index(key)
        value = self._inputs[index]
        return value.read() if type(value) is not np.ndarray and isinstance(value, Ref) else value

    def input_list(self, name: str) -> list[Any]:
        """Return the values of a list input; a single input yields a list of one."""
        return [self.input(i) for i in self.op_kernel.input_range(name)]

    def has_input(self, key: Key) -> bool:
        """Return True if the input is present."""
        return self._inputs[self.input_index(key)] is not None

    def input_is_ref(self, key: Key) -> bool:
        """Return True if the input is a reference."""
        return isinstance(self._inputs[self.input_index(key)], Ref)

    def mutable_input(self, key: Key) -> Ref:
        """Return the reference of an input; hold its ``lock`` for a read-modify-write.

        Raises
        ------
        InvalidArgumentError
            The input is a plain value.
        """
        value = self._inputs[self.input_index(key)]
        if not isinstance(value, Ref):
            raise InvalidArgumentError(f"input {key!r} is not a reference", hint="read it with input()")
        return value

    def mutable_input_list(self, name: str) -> list[Ref]:
        """Return the references of a list input."""
        return [self.mutable_input(i) for i in self.op_kernel.input_range(name)]

    def replace_ref_input(self, key: Key, value: Array) -> None:
        """Assign a value of any shape to the variable that an input refers to."""
        self.mutable_input(key).assign(self._check_value(value, self.input_dtype(key).base, key))

    def delete_ref_input(self, key: Key) -> None:
        """Make the variable that an input refers to uninitialised."""
        self.mutable_input(key).assign(None)

    def validate_inputs_are_same_shape(self) -> None:
        """Check that all inputs have the same shape.

        Raises
        ------
        ShapeError
            Two shapes differ.
        """
        shapes = [list(self.input(i).shape) for i in range(self.num_inputs)]
        for i, shape in enumerate(shapes):
            if shape != shapes[0]:
                kernel = self.op_kernel
                raise ShapeError(
                    f"the inputs of {kernel.type_string} must have one shape: "
                    f"input 0 is {shapes[0]}, input {i} is {shape}"
                )

    def match_signature(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Check the types of the node's inputs and outputs, as `OpKernelConstruction.match_signature` does."""
        check_signature(self.op_kernel.props, inputs, outputs, f"node '{self.op_kernel.name}'")

    # Outputs

    def set_output(self, key: Key, value: Any) -> None:
        """Set the value of an output.

        Raises
        ------
        InternalError
            The type of the value is not that declared by the node.
        """
        index = key if type(key) is int and 0 <= key < len(self._outputs) else self.output_index(key)
        dtype = self.op_kernel.output_dtypes[index]
        if dtype is None:
            raise InternalError(f"output {key!r} is a reference: use set_output_ref")
        if type(value) is np.ndarray and (value.dtype is dtype or value.dtype == dtype):
            self._outputs[index] = value
        else:
            self._outputs[index] = self._check_value(value, self.op_kernel.output_types[index], key)

    def set_output_list(self, name: str, values: Iterable[Any]) -> None:
        """Set the values of a list output."""
        indices, value_list = self.op_kernel.output_range(name), list(values)
        if len(indices) != len(value_list):
            raise InternalError(f"{len(value_list)} values for output '{name}', which has {len(indices)}")
        for index, value in zip(indices, value_list, strict=True):
            self.set_output(index, value)

    def set_output_ref(self, key: Key, ref: Ref) -> None:
        """Set an output to a reference to a variable."""
        index = self.output_index(key)
        if self.op_kernel.output_dtypes[index] is not None:
            raise InternalError(f"output {key!r} is not a reference: use set_output")
        self._outputs[index] = ref

    def allocate_output(self, key: Key, shape: Sequence[int], attributes: AllocatorAttributes = ANY_MEMORY) -> Array:
        """Allocate an uninitialised array as output, to be filled by the kernel.

        Raises
        ------
        ResourceExhaustedError
            Memory is exhausted, or the limit of the step is exceeded.
        InternalError
            The output is a reference.
        """
        index = self.output_index(key)
        dtype = self.op_kernel.output_dtypes[index]
        if dtype is None:
            raise InternalError(f"output {key!r} is a reference: it cannot be allocated")
        attributes = attributes.merge(self.output_alloc_attr(index))
        array = self._outputs[index] = self._allocate("output", dtype, shape, attributes)
        return array

    def allocate_temp(self, dtype: Any, shape: Sequence[int], attributes: AllocatorAttributes = ANY_MEMORY) -> Array:
        """Allocate an uninitialised temporary array; it may become an output."""
        return self._allocate("temp", as_data_type(dtype).numpy, shape, attributes)

    def allocate_persistent(self, dtype: Any, shape: Sequence[int]) -> Array:
        """Allocate an uninitialised array that outlives the run of the kernel."""
        return self._allocate("persistent", as_data_type(dtype).numpy, shape)

    def mutable_output(self, key: Key) -> Any:
        """Return the current value of an output, or None."""
        return self._outputs[self.output_index(key)]

    def release_output(self, key: Key) -> Any:
        """Remove and return the value of an output."""
        index = self.output_index(key)
        value, self._outputs[index] = self._outputs[index], None
        return value

    def output_list(self, name: str) -> list[Any]:
        """Return the current values of a list output."""
        return [self._outputs[i] for i in self.op_kernel.output_range(name)]

    def output_required(self, key: Key) -> bool:
        """Return True if the output has users; others may stay unset."""
        return not self._required or bool(self._required[self.output_index(key)])

    def take_outputs(self) -> list[Any]:
        """Return all outputs; called by the executor.

        Raises
        ------
        OpError
            The kernel has set this error as its status.
        InternalError
            A required output was not set.
        """
        if self.status is not None:
            raise self.status
        for value in self._outputs:
            if value is None:
                self._check_outputs()
        return self._outputs

    def _check_outputs(self) -> None:
        kernel = self.op_kernel
        missing_outputs = [i for i, v in enumerate(self._outputs) if v is None and self.output_required(i)]
        if missing_outputs and not self.is_input_dead and kernel.type_string not in _MAY_LEAVE_UNSET:
            raise InternalError(
                f"Missing {missing_outputs[0]}-th output from {{{{node {kernel.name}}}}}: its kernel did not set it",
                node=kernel.name,
                op=kernel.type_string,
                where=f"node '{kernel.name}' ({kernel.type_string})",
            )

    def _check_value(self, value: Any, dtype: DataType, key: Key) -> Array:
        """Return a value as an array; raise if its type is not the declared one."""
        array = np.asarray(value) if isinstance(value, np.generic) else value
        if not isinstance(array, np.ndarray) or array.dtype != dtype.numpy:
            found_type = array.dtype if isinstance(array, np.ndarray) else type(value).__name__
            raise InternalError(f"{key!r} got a value of {found_type}, but {dtype} is declared")
        return array

    def _allocate(
        self, use: str, dtype: np.dtype[Any], shape: Sequence[int], attributes: AllocatorAttributes = ANY_MEMORY
    ) -> Array:
        size = prod(shape) * dtype.itemsize
        limit = self.step.memory_limit
        if limit is not None and self.step.allocated + size > limit:
            raise ResourceExhaustedError(
                f"OOM when allocating tensor with shape {list(shape)} and type {dtype}: {size} bytes above "
                f"{self.step.allocated} of {limit}",
                hint="raise the memory limit, or run with smaller inputs",
            )
        require(size)
        try:
            array = self.device.get_allocator(attributes).allocate(dtype, shape)
        except MemoryError:
            raise ResourceExhaustedError(
                f"OOM when allocating tensor with shape {list(shape)} and type {dtype}"
            ) from None
        except ValueError as error:
            raise InvalidArgumentError(f"no array has the shape {list(shape)}: {error}") from None
        self.step.allocated += size
        if self.allocations is not None:
            self.allocations.append(Allocation(use, size))
        return array

    # Forwarding

    def forward_input(self, input_key: Key, output_key: Key, shape: Sequence[int] | None = None) -> Array | None:
        """Return the array of an input, reshaped for reuse as an output, or None if it cannot be reused.

        The input must be a plain value of the type, size and memory type of the output, without later users in the
        schedule, whose memory is not shared with other arrays.
        """
        source, target = self.input_index(input_key), self.output_index(output_key)
        kernel = self.op_kernel
        if source >= len(self._last_use) or not self._last_use[source]:
            return None
        if self._forward_from and not self._may_forward(source, target):
            return None
        if kernel.input_memory_types[source] != kernel.output_memory_types[target]:
            return None
        if kernel.input_types[source] != kernel.output_types[target] or kernel.input_types[source].is_ref:
            return None
        value = self._inputs[source]
        if type(value) is not np.ndarray or not _is_sole_owner(value):
            return None
        output_shape = value.shape if shape is None else tuple(shape)
        return value.reshape(output_shape) if prod(output_shape) == value.size else None

    def _may_forward(self, source: int, target: int) -> bool:
        """Return False if an output is never forwarded to, or the input is reserved for another one."""
        reserved = self._forward_from
        return reserved[target] != NEVER_FORWARD and all(
            k == target or index != source for k, index in enumerate(reserved)
        )

    def output_expects_forwarding(self, key: Key) -> bool:
        """Return True if an input is reserved for an output."""
        return bool(self._forward_from) and self._forward_from[self.output_index(key)] >= 0

    def forward_input_to_output_with_shape(self, input_key: Key, output_key: Key, shape: Sequence[int]) -> bool:
        """Set an output to an input with another shape; return False if the sizes differ."""
        value = self.input(input_key)
        if prod(shape) != value.size:
            return False
        self.set_output(output_key, value.reshape(tuple(shape)))
        return True

    def forward_input_or_allocate_output(
        self, candidates: Iterable[Key], output_key: Key, shape: Sequence[int]
    ) -> tuple[Array, int]:
        """Set and return the array of an output, with the index of the input that it reuses (-1: allocated)."""
        for key in candidates:
            array = self.forward_input(key, output_key, shape)
            if array is not None:
                self.set_output(output_key, array)
                return array, self.input_index(key)
        return self.allocate_output(output_key, shape), -1

    def forward_ref_input_to_ref_output(self, input_key: Key, output_key: Key) -> None:
        """Set an output to the reference of an input."""
        self.set_output_ref(output_key, self.mutable_input(input_key))

    # Errors

    def ctx_failure(self, error: OpError) -> None:
        """Fail the step with an error located at the line of the caller, and log it for debugging."""
        self._fail_at(error, caller_line(1), warning=False)

    def ctx_failure_with_warning(self, error: OpError) -> None:
        """Fail the step with an error located at the line of the caller, and log it as a warning."""
        self._fail_at(error, caller_line(1), warning=True)

    def _fail_at(self, error: OpError, line: str, *, warning: bool) -> None:
        log_failure(error, line, warning=warning)
        error.where = error.where or f"node '{self.op_kernel.name}' ({self.op_kernel.type_string}), {line}"
        self.set_status(error)

    def set_status(self, error: OpError | None) -> None:
        """Fail the step with an error; the first error is kept."""
        if self.status is None:
            self.status = error

    def require(self, cond: object, message: str, error: type[OpError] = InvalidArgumentError, hint: str = "") -> None:
        """Raise `error` unless the condition holds."""
        if not cond:
            raise error(message, hint=hint)

    # Resources

    def make_handle(
        self,
        container: str,
        name: str,
        cls: type[ResourceBase],
        dtype_and_shape: Iterable[tuple[DataType, TensorShape]] = (),
    ) -> Array:
        """Return an output value that is a handle of a resource."""
        where = container or DEFAULT_CONTAINER
        return as_value(ResourceHandle(self.device.name, where, name, type_name(cls), tuple(dtype_and_shape)))

    def resource_handle(self, key: Key) -> ResourceHandle:
        """Return the resource handle in an input.

        Raises
        ------
        InvalidArgumentError
            The input holds no handle.
        """
        array = self.input(key)
        handle = array.flat[0] if isinstance(array, np.ndarray) and array.size and array.dtype.hasobject else None
        if not isinstance(handle, ResourceHandle):
            raise InvalidArgumentError(
                f"input {key!r} does not hold the handle of a resource", hint="feed none by hand"
            )
        return handle

    def lookup_resource(self, key: Key | ResourceHandle, cls: type[R]) -> R:
        """Return the resource that an input or a handle refers to.

        Raises
        ------
        NotFoundError
            The resource was not created yet, or was deleted.
        InvalidArgumentError
            It is of another class.
        """
        handle = key if isinstance(key, ResourceHandle) else self.resource_handle(key)
        self._check_type(handle, cls)
        if isinstance(handle.resource, cls):
            return handle.resource
        return self.step.resource_manager.lookup(handle.container, handle.name, cls)

    def lookup_or_create_resource(self, key: Key | ResourceHandle, cls: type[R], create: Callable[[], R]) -> R:
        """The resource that an input (or a handle) names, made by `create` if it is not there."""
        handle = key if isinstance(key, ResourceHandle) else self.resource_handle(key)
        self._check_type(handle, cls)
        if isinstance(handle.resource, cls):
            return handle.resource
        return self.step.resource_manager.lookup_or_create(handle.container, handle.name, cls, create)

    def delete_resource(self, key: Key | ResourceHandle) -> None:
        """Remove the resource that an input (or a handle) names."""
        handle = key if isinstance(key, ResourceHandle) else self.resource_handle(key)
        if handle.resource is None:
            self.step.resource_manager.delete(handle.container, handle.name, handle.type_name)

    def _check_type(self, handle: ResourceHandle, cls: type[ResourceBase]) -> None:
        if handle.type_name != type_name(cls):
            raise InvalidArgumentError(f"the resource '{handle.name}' is a {handle.type_name}, not a {type_name(cls)}")


# Ops that send only one of their outputs, or none
_MAY_LEAVE_UNSET = frozenset({"Switch", "RefSwitch", "_SwitchN", "Merge", "RefMerge", "_Recv", "_HostRecv"})


def _is_sole_owner(value: Array) -> bool:
    return value.base is None and value.flags.owndata and value.flags.writeable and value.flags.c_contiguous


def _check_index(index: int, size: int, kind: str) -> int:
    if not 0 <= index < size:
        raise InvalidArgumentError(f"{kind} {index} of a node that has {size}")
    return index


def _single_index(indices: range, name: str, is_list: bool, kind: str) -> int:
    if is_list or len(indices) != 1:
        raise InvalidArgumentError(
            f"OpKernel used list-valued {kind} name '{name}' when single-valued {kind} was expected",
            hint=f"use {kind}_list",
        )
    return indices[0]


def as_value(element: Any) -> Array:
    """Return an object array of rank 0 that holds one element."""
    array = np.empty((), np.object_)
    array[()] = element
    return array
