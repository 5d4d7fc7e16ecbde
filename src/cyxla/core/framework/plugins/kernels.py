"""Kernels in C, version 2 of the interface."""

from __future__ import annotations

import ctypes
from typing import Any
from weakref import finalize

import numpy as np

from cyxla.core.framework.op_kernel import AsyncOpKernel, Done, OpKernel, OpKernelConstruction, located
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.plugins.context import NativeContext, done, keep_until_done
from cyxla.core.framework.plugins.interface import FAILED, OK, Kernel, Tensor, dims_of, text
from cyxla.core.framework.plugins.memory import NodeMemory, shape_of
from cyxla.core.framework.plugins.resources import NativeResource, checked, lookup, resource_class
from cyxla.core.framework.plugins.shape_functions import KnownShapes, NativeShapeFunction
from cyxla.core.framework.resource_mgr import DEFAULT_CONTAINER, ResourceHandle
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import as_data_type
from cyxla.errors import InternalError, InvalidArgumentError, UnimplementedError

Array = np.ndarray[Any, Any]


class ConstructionContext(NativeContext):
    """Context of the function `create` of a kernel."""

    kind = "the constructor of a kernel"


class RunContext(NativeContext):
    """Context of one run of a kernel.

    Parameters
    ----------
    ctx : OpKernelContext
        Context of the run.
    kernel : NativeKernel or AsyncNativeKernel
        Kernel that runs.
    """

    kind = "a kernel"

    def __init__(self, ctx: OpKernelContext, kernel: NativeKernelBase) -> None:
        super().__init__(kernel.node, kernel.state, kernel.row.data)
        self._ctx, self._kernel = ctx, kernel
        self._forwarded: set[int] = set()  # inputs whose memory is that of an output
        self._resources: list[NativeResource] = []  # those looked up, which must not be destroyed meanwhile
        arrays = [ctx.input(i) for i in range(ctx.num_inputs)]
        types = kernel.input_types
        tensors = [self.memory.tensor(array, types[i], f"input {i}") for i, array in enumerate(arrays)]
        self.struct.inputs = self.memory.array_of(Tensor, tensors)
        self._shapes = kernel.known_shapes.outputs(arrays) if kernel.known_shapes else None

    # Outputs

    def _output_shape(self, index: int, rank: int, dims: Any) -> tuple[int, ...]:
        """Return the shape of an output; that of the shape function for the rank -1."""
        self.output_type(index)
        expected = TensorShape() if self._shapes is None else self._shapes[index]
        if rank < 0:
            if not expected.is_fully_defined:
                raise InvalidArgumentError(f"no shape function gives the shape of output {index}: pass its dimensions")
            return tuple(expected.as_list())
        shape = dims_of(rank, dims)
        return shape if shape == expected.dims else self._checked_shape(index, shape, expected)

    def _checked_shape(self, index: int, shape: tuple[int, ...], expected: TensorShape) -> tuple[int, ...]:
        if any(n < 0 for n in shape):
            raise InvalidArgumentError(f"output {index} has a negative size: {list(shape)}")
        if not expected.is_compatible_with(shape_of(len(shape), list(shape))):
            raise InternalError(
                f"output {index} of {self.node.op_def.name} is {list(shape)}, but its shape function gives {expected}"
            )
        return shape

    def allocate_output(self, index: int, rank: int, dims: Any) -> int:
        """Allocate the memory of an output."""
        shape = self._output_shape(index, rank, dims)
        if self.output_type(index).numpy.hasobject:
            raise UnimplementedError(
                f"output {index} is {self.output_type(index)}", hint="use cyxla_set_strings or cyxla_set_handle"
            )
        array = self.memory.keep(self._ctx.allocate_output(index, shape))  # C may have it still after another call
        return int(array.ctypes.data)

    def allocate_temp(self, dtype: int, rank: int, dims: Any) -> int:
        """Allocate memory until the end of the run."""
        data_type = as_data_type(dtype)
        if data_type.numpy.hasobject or rank < 0:
            raise InvalidArgumentError(f"no temporary memory of {data_type} and rank {rank} can be allocated")
        return int(self.memory.keep(self._ctx.allocate_temp(data_type, dims_of(rank, dims))).ctypes.data)

    def forward_input(self, source: int, target: int, rank: int, dims: Any) -> int | None:
        """Set an output to the memory of an input, if nobody else needs it."""
        dtype = self.input_type(source)
        self.output_type(target)
        if source in self._forwarded or dtype.numpy.hasobject:
            return None
        array = self._ctx.forward_input(source, target, None if rank < 0 else dims_of(rank, dims))
        if array is None or not array.flags.aligned:
            return None
        self._output_shape(target, array.ndim, array.shape)
        self._ctx.set_output(target, array)
        self._forwarded.add(source)
        return int(array.ctypes.data)

    def set_strings(self, index: int, rank: int, dims: Any, values: Any) -> int:
        """Set an output of strings."""
        shape = self._output_shape(index, rank, dims)
        array = np.empty(shape, np.object_)
        flat = [ctypes.string_at(values[k].data, values[k].size) if values[k].size else b"" for k in range(array.size)]
        array.ravel()[:] = flat
        self._ctx.set_output(index, array)
        return OK

    def set_handle(self, index: int, container: bytes, name: bytes, kind: bytes) -> int:
        """Set an output to the handle of a resource."""
        self._output_shape(index, 0, None)
        handle = ResourceHandle(self._ctx.device.name, text(container) or DEFAULT_CONTAINER, text(name), text(kind))
        array = np.empty((), np.object_)
        array[()] = handle
        self._ctx.set_output(index, array)
        return OK

    def output_required(self, index: int) -> int:
        """Return whether an output has users."""
        self.output_type(index)
        return self._ctx.output_required(index)

    def is_cancelled(self) -> int:
        """Return whether the step is being cancelled."""
        manager = self._ctx.cancellation_manager
        return manager is not None and (manager.is_cancelling or manager.is_cancelled)

    # Resources

    def _keep(self, resource: NativeResource, target: Any) -> int:
        self._resources.append(resource)
        target[0] = resource.value
        return OK

    def lookup_resource(self, container: bytes, name: bytes, kind: bytes, target: Any) -> int:
        """Look up a resource."""
        manager = self._ctx.resource_manager
        return self._keep(lookup(manager, text(container), text(name), text(kind)), target)

    def lookup_or_create_resource(
        self, container: bytes, name: bytes, kind: bytes, create: Any, argument: int, destroy: Any, target: Any
    ) -> int:
        """Look up a resource, or create it."""

        def created() -> NativeResource:
            value = ctypes.c_void_p()
            status = create(self.address, argument, ctypes.byref(value))
            self.check(status)
            return resource_class(text(kind))(value.value, destroy)

        manager = self._ctx.resource_manager
        resource = manager.lookup_or_create(text(container), text(name), resource_class(text(kind)), created)
        return self._keep(checked(resource, text(kind)), target)

    def create_resource(self, container: bytes, name: bytes, kind: bytes, value: int, destroy: Any) -> int:
        """Create a resource."""
        resource = resource_class(text(kind))(value, destroy)
        try:
            self._ctx.resource_manager.create(text(container), text(name), resource)
        except BaseException:
            resource.disown()
            raise
        return OK

    def delete_resource(self, container: bytes, name: bytes, kind: bytes) -> int:
        """Delete a resource."""
        manager = self._ctx.resource_manager
        lookup(manager, text(container), text(name), text(kind))
        manager.delete(text(container), text(name), text(kind))
        return OK


class AsyncRunContext(RunContext):
    """Context of one run of an asynchronous kernel."""

    kind = "an asynchronous kernel"

    def __init__(self, ctx: OpKernelContext, kernel: NativeKernelBase, report: Done) -> None:
        super().__init__(ctx, kernel)
        self._report = report

    def finish(self, status: int) -> None:
        """End the run."""
        try:
            self.check(status)
        except BaseException as error:
            self._ctx.set_status(located(error, self._kernel))
        self._report()


class NativeKernelBase(OpKernel):
    """Kernel of a library.

    Parameters
    ----------
    construction : OpKernelConstruction
        Node and device.
    row : Kernel
        Row of the kernel.
    shape_function : NativeShapeFunction or None
        Shape function of the op, if it is in the same library.
    library : object
        Library, which is kept alive.
    """

    is_expensive = True

    def __init__(
        self, construction: OpKernelConstruction, row: Kernel, shape_function: NativeShapeFunction | None, library: Any
    ) -> None:
        super().__init__(construction)
        self.row, self._library = row, library
        attrs, op_def = construction.props.node_def.attr, construction.props.op_def
        self.node = NodeMemory(op_def, attrs, self.name, self.device.name)
        self.known_shapes = KnownShapes(shape_function, self.node, attrs) if shape_function else None
        self.state: int | None = None
        self._create()

    def _create(self) -> None:
        """Call the constructor; the state is destroyed with the kernel."""
        if not self.row.create:
            return
        context = ConstructionContext(self.node, data=self.row.data)
        with context:
            status = self.row.create(context.address)
        self.state = context.struct.state
        if self.state is not None and self.row.destroy:
            finalize(self, self.row.destroy, self.state).atexit = False  # threads of the library may still run
        context.check(status)


class NativeKernel(NativeKernelBase):
    """Kernel of a library that computes at once."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Call the kernel without the GIL."""
        RunContext(ctx, self).call(self.row.compute)


class AsyncNativeKernel(NativeKernelBase, AsyncOpKernel):
    """Kernel of a library that calls back when it has ended."""

    def compute_async(self, ctx: OpKernelContext, report: Done) -> None:
        """Start the kernel without the GIL."""
        context = AsyncRunContext(ctx, self, report)
        keep_until_done(context)
        self.row.compute_async(context.address, done)


def make_kernel(
    construction: OpKernelConstruction, row: Kernel, shape_function: NativeShapeFunction | None, library: Any
) -> NativeKernelBase:
    """Return the kernel of a row."""
    kind = AsyncNativeKernel if row.compute_async else NativeKernel
    return kind(construction, row, shape_function, library)


__all__ = ["FAILED", "AsyncNativeKernel", "NativeKernel", "make_kernel"]
