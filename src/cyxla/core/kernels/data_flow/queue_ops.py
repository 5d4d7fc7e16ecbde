"""Queues: their creation, and operations that wait without holding a thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel import AsyncOpKernel, Done, OpKernelConstruction, located
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.tensor_shape import SCALAR, TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.framework.variable import Ref
from cyxla.core.kernels.lib.queues.elements import slices
from cyxla.core.kernels.lib.queues.queue import UNBOUNDED, Queue
from cyxla.core.kernels.lib.queues.stores import FifoStore, PriorityStore, ShuffleStore, Store
from cyxla.core.kernels.lib.resource_op import ResourceOp, legacy_handle, resource_of
from cyxla.errors import InvalidArgumentError, OpError

Array = np.ndarray[Any, Any]


# Creation


class QueueOp(ResourceOp):
    """Base class of the kernels that create queues."""

    resource_class = Queue

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.kind = self.type_string.removesuffix("V2")
        capacity = self.attrs["capacity"]
        self.capacity = UNBOUNDED if capacity < 0 else capacity
        self.component_types: tuple[DataType, ...] = tuple(self.attrs["component_types"])
        self.shapes: tuple[TensorShape, ...] = tuple(self.attrs["shapes"])

    def compute(self, ctx: OpKernelContext) -> None:
        """Output the handle, and record the memory of the elements."""
        super().compute(ctx)
        if ctx.track_allocations:
            queue = ctx.resource_manager.lookup(self.container, self.resource_name, Queue)
            ctx.record_persistent_memory_allocation(queue.memory_used)

    def create(self) -> Queue:
        """Create the queue.

        Raises
        ------
        InvalidArgumentError
            The numbers of types and shapes differ, or a shape is not fully defined.
        """
        self._check_shapes()
        name, types = self.resource_name, self.component_types
        return Queue(self.kind, name, self.store(), types, self.shapes, self.capacity)

    def store(self) -> Store:
        """Return an empty store."""
        return FifoStore()

    def _check_shapes(self) -> None:
        if self.shapes and len(self.shapes) != len(self.component_types):
            raise InvalidArgumentError(
                f"Different number of component types.  Types: {_types(self.component_types)}, Shapes: "
                f"{_shapes(self.shapes)}"
            )
        for shape in self.shapes:
            if not shape.is_fully_defined:
                raise InvalidArgumentError(
                    f"Shape {shape} is not fully defined", hint="use PaddingFIFOQueue, or no shapes"
                )

    def verify(self, resource: Queue) -> None:
        """Check kind, capacity, types and shapes of a shared queue."""
        shared = f"Shared queue '{resource.name}' has"
        if resource.kind != self.kind:
            raise InvalidArgumentError(f"Expected {resource.kind}, found {self.type_string}")
        if resource.capacity != self.capacity:
            raise InvalidArgumentError(
                f"{shared} capacity {resource.capacity} but requested capacity was {self.capacity}"
            )
        if resource.dtypes != self.component_types:
            raise InvalidArgumentError(
                f"{shared} component types {_types(resource.dtypes)} but requested component types were "
                f"{_types(self.component_types)}"
            )
        if not self._has_equal_shapes(resource):
            raise InvalidArgumentError(
                f"{shared} component shapes {_shapes(resource.shapes)} but requested component shapes were "
                f"{_shapes(self.shapes)}"
            )

    def _has_equal_shapes(self, queue: Queue) -> bool:
        return queue.shapes == self.shapes


def _types(types: Sequence[DataType]) -> str:
    return ", ".join(map(str, types))


def _shapes(shapes: Sequence[TensorShape]) -> str:
    return f"[{', '.join(map(str, shapes))}]"


kernel(("FIFOQueue", "FIFOQueueV2"))(QueueOp)


@kernel(("PaddingFIFOQueue", "PaddingFIFOQueueV2"))
class PaddingQueueOp(QueueOp):
    """Kernel that creates a queue whose elements may differ in the unknown dimensions of their shapes."""

    def _check_shapes(self) -> None:
        types, shapes = len(self.component_types), len(self.shapes)
        if types != shapes:
            raise InvalidArgumentError(
                f"Shapes must be provided for all components, but received {types} dtypes and {shapes} shapes."
            )
        if any(shape.rank is None for shape in self.shapes):
            raise InvalidArgumentError("shape <unknown> must have known rank.")

    def _has_equal_shapes(self, queue: Queue) -> bool:
        pairs = zip(queue.shapes, self.shapes, strict=False)
        return len(queue.shapes) == len(self.shapes) and all(a.is_compatible_with(b) for a, b in pairs)


@kernel(("PriorityQueue", "PriorityQueueV2"))
class PriorityQueueOp(QueueOp):
    """Kernel that creates a queue ordered by an additional first component, an int64."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.component_types = (DataType.DT_INT64, *self.component_types)
        self.shapes = (SCALAR, *self.shapes) if self.shapes else ()

    def store(self) -> Store:
        """Return an empty store."""
        return PriorityStore()


@kernel(("RandomShuffleQueue", "RandomShuffleQueueV2"))
class RandomShuffleQueueOp(QueueOp):
    """Kernel that creates a queue in random order."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.reserve = self.attrs["min_after_dequeue"]
        construction.require(self.reserve >= 0, f"min_after_dequeue {self.reserve} must be >= 0")
        construction.require(
            self.reserve < self.capacity, f"min_after_dequeue {self.reserve} must be < capacity {self.capacity}"
        )
        self.seeds = (self.attrs["seed"], self.attrs["seed2"])

    def create(self) -> Queue:
        """Create the queue, which remembers its seeds."""
        queue = super().create()
        queue.seeds = self.seeds
        return queue

    def store(self) -> Store:
        """Return an empty store."""
        return ShuffleStore(self.reserve, *self.seeds)

    def verify(self, resource: Queue) -> None:
        """Check also the number of elements that stay, and the seeds."""
        super().verify(resource)
        if resource.store.reserve != self.reserve:
            raise InvalidArgumentError(
                f"Shared queue '{resource.name}' has min_after_dequeue {resource.store.reserve} but requested "
                f"min_after_dequeue was {self.reserve}."
            )
        if resource.seeds not in (self.seeds, (0, 0)) and self.seeds != (0, 0):
            raise InvalidArgumentError(
                f"Shared queue '{resource.name}' has random seeds {resource.seeds} but requested seeds are "
                f"{self.seeds}."
            )


@kernel("FakeQueue")
def fake_queue(ctx: OpKernelContext) -> None:
    """Output the container and name of a queue as a reference to two strings."""
    handle = ctx.resource_handle("resource")
    ctx.set_output_ref(0, Ref(DataType.DT_STRING, legacy_handle(handle.container, handle.name), ctx.op_kernel.name))


# Operations that wait


class QueueKernel(AsyncOpKernel, ABC):
    """Base class of the kernels that wait for a queue."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        construction.require(self.attrs.get("timeout_ms", -1) == -1, "Timeout not supported yet.")

    def compute_async(self, ctx: OpKernelContext, done: Done) -> None:
        """Look up the queue and start the operation."""
        self.start_on(resource_of(ctx, Queue), ctx, done)

    @abstractmethod
    def start_on(self, queue: Queue, ctx: OpKernelContext, done: Done) -> None:
        """Start the operation on the queue."""

    def added(self, ctx: OpKernelContext, done: Done) -> Callable[[OpError | None], None]:
        """Return the callback of an operation without results."""
        return partial(self._finish, ctx, done, values=())

    def taken(self, ctx: OpKernelContext, done: Done) -> Callable[[OpError | None, Sequence[Array]], None]:
        """Return the callback of an operation whose results are the outputs."""
        return partial(self._finish, ctx, done)

    def _finish(self, ctx: OpKernelContext, done: Done, error: OpError | None, values: Sequence[Array]) -> None:
        if error is not None:
            ctx.set_status(located(error, self))
        else:
            for k, value in enumerate(values):
                ctx.set_output(k, value)
        done()


@kernel(("QueueEnqueue", "QueueEnqueueV2"))
class QueueEnqueueOp(QueueKernel):
    """Kernel that adds an element."""

    def start_on(self, queue: Queue, ctx: OpKernelContext, done: Done) -> None:
        """Add the element when there is room."""
        ctx.match_signature([ctx.input_dtype(0), *queue.dtypes], [])
        values = ctx.input_list("components")
        queue.check_element(values)
        queue.add([tuple(value.copy() for value in values)], self.added(ctx, done), ctx.cancellation_manager)


@kernel(("QueueEnqueueMany", "QueueEnqueueManyV2"))
class QueueEnqueueManyOp(QueueKernel):
    """Kernel that adds the rows of its inputs."""

    def start_on(self, queue: Queue, ctx: OpKernelContext, done: Done) -> None:
        """Add the elements as there is room."""
        ctx.match_signature([ctx.input_dtype(0), *queue.dtypes], [])
        values = ctx.input_list("components")
        size = queue.check_batch(values)
        if not size:
            done()
            return
        queue.add(slices(values, size), self.added(ctx, done), ctx.cancellation_manager)


@kernel(("QueueDequeue", "QueueDequeueV2"))
class QueueDequeueOp(QueueKernel):
    """Kernel that takes an element."""

    def start_on(self, queue: Queue, ctx: OpKernelContext, done: Done) -> None:
        """Output the element when there is one."""
        ctx.match_signature([ctx.input_dtype(0)], queue.dtypes)
        queue.take(self.taken(ctx, done), ctx.cancellation_manager)


@kernel(("QueueDequeueMany", "QueueDequeueManyV2", "QueueDequeueUpTo", "QueueDequeueUpToV2"))
class QueueDequeueManyOp(QueueKernel):
    """Kernel that takes several elements and stacks them."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.allow_small = "UpTo" in self.type_string

    def start_on(self, queue: Queue, ctx: OpKernelContext, done: Done) -> None:
        """Output the elements when there are enough."""
        size = ctx.input("n")
        ctx.require(size.size == 1, f"n must be a scalar; its shape is {list(size.shape)}")
        number = int(size.item())
        name = f"{self.type_string.removesuffix('V2').removeprefix('Queue')}Op"
        ctx.require(number >= 0, f"{name} requested {number} < 0 elements")
        ctx.match_signature([ctx.input_dtype(0), DataType.DT_INT32], queue.dtypes)
        queue.take_batch(number, self.taken(ctx, done), ctx.cancellation_manager, allow_small=self.allow_small)


@kernel(("QueueClose", "QueueCloseV2"))
class QueueCloseOp(QueueKernel):
    """Kernel that closes a queue."""

    def start_on(self, queue: Queue, ctx: OpKernelContext, done: Done) -> None:
        """Close the queue after pending additions, or cancel these."""
        queue.shut(self.added(ctx, done), cancel_pending=self.attrs["cancel_pending_enqueues"])


# State


@kernel(("QueueSize", "QueueSizeV2"))
def queue_size(ctx: OpKernelContext) -> None:
    """Output the number of elements."""
    ctx.set_output(0, np.array(len(resource_of(ctx, Queue)), np.int32))


@kernel(("QueueIsClosed", "QueueIsClosedV2"))
def queue_is_closed(ctx: OpKernelContext) -> None:
    """Output if the queue is closed."""
    ctx.set_output(0, np.array(resource_of(ctx, Queue).closed))
