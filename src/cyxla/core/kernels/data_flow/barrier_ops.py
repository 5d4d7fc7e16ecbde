"""Barriers, which collect the components of elements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel import AsyncOpKernel, Done, OpKernelConstruction, located
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.types import DataType
from cyxla.core.kernels.lib.queues.barrier import Barrier
from cyxla.core.kernels.lib.resource_op import ResourceOp, resource_of
from cyxla.errors import InvalidArgumentError, OpError

Array = np.ndarray[Any, Any]
_HANDLE = DataType.DT_STRING_REF


@kernel("Barrier")
class BarrierOp(ResourceOp):
    """Kernel that creates a barrier."""

    resource_class = Barrier

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.types, self.shapes = tuple(self.attrs["component_types"]), tuple(self.attrs["shapes"])
        construction.require(
            len(self.shapes) == len(self.types) and all(shape.is_fully_defined for shape in self.shapes),
            "All of the component shapes must be specified",
        )
        construction.require(
            self.attrs["capacity"] == -1,
            "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to enforce a limited "
            "capacity.",
        )

    def create(self) -> Barrier:
        """Create the barrier."""
        return Barrier(self.resource_name, self.types, self.shapes)

    def verify(self, resource: Barrier) -> None:
        """Check types and shapes of a shared barrier."""
        for what, found, requested in (
            ("types", resource.dtypes, self.types),
            ("shapes", resource.shapes, self.shapes),
        ):
            if found != requested:
                raise InvalidArgumentError(
                    f"Shared barrier '{resource.name}' has component {what} {_text(found)} but requested component "
                    f"{what} were {_text(requested)}"
                )


def _text(items: Sequence[Any]) -> str:
    return ", ".join(map(str, items))


class BarrierKernel(AsyncOpKernel, ABC):
    """Base class of the kernels that may wait for a barrier."""

    def compute_async(self, ctx: OpKernelContext, done: Done) -> None:
        """Look up the barrier and start the operation."""

        def finish(error: OpError | None, values: Sequence[Array] = ()) -> None:
            if error is not None:
                ctx.set_status(located(error, self))
            else:
                for k, value in enumerate(values):
                    ctx.set_output(k, value)
            done()

        self.start_on(resource_of(ctx, Barrier), ctx, finish)

    @abstractmethod
    def start_on(self, barrier: Barrier, ctx: OpKernelContext, finish: Any) -> None:
        """Start the operation; `finish` takes an error or None, and values."""


@kernel("BarrierInsertMany")
class BarrierInsertManyOp(BarrierKernel):
    """Kernel that inserts a component of several elements."""

    def start_on(self, barrier: Barrier, ctx: OpKernelContext, finish: Any) -> None:
        """Insert the values."""
        component, count = self.attrs["component_index"], len(barrier.dtypes)
        ctx.require(
            0 <= component < count,
            f"The component ID is out of range {component} > num_components (= {count})",
        )
        ctx.match_signature([_HANDLE, DataType.DT_STRING, barrier.dtypes[component]], [])
        keys, values = ctx.input("keys"), ctx.input("values")
        ctx.require(keys.ndim == 1, f"keys must be a vector; their shape is {list(keys.shape)}")
        ctx.require(
            values.ndim > 0 and len(values) == len(keys),
            f"there are {len(keys)} keys, but the values have the shape {list(values.shape)}",
        )
        barrier.insert(keys.tolist(), component, values, finish)


@kernel("BarrierTakeMany")
class BarrierTakeManyOp(BarrierKernel):
    """Kernel that takes complete elements."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        construction.require(self.attrs["timeout_ms"] == -1, "Timeout not supported yet.")

    def start_on(self, barrier: Barrier, ctx: OpKernelContext, finish: Any) -> None:
        """Output the elements when there are enough."""
        number = ctx.input("num_elements")
        ctx.require(number.ndim == 0, "num_elements must be a scalar.")
        ctx.require(int(number) >= 0, f"num_elements is {int(number)}; it must not be negative")
        ctx.match_signature([_HANDLE, DataType.DT_INT32], [DataType.DT_INT64, DataType.DT_STRING, *barrier.dtypes])
        barrier.take(int(number), finish, ctx.cancellation_manager, allow_small=self.attrs["allow_small_batch"])


@kernel("BarrierClose")
class BarrierCloseOp(BarrierKernel):
    """Kernel that closes a barrier."""

    def start_on(self, barrier: Barrier, ctx: OpKernelContext, finish: Any) -> None:
        """Close the barrier."""
        barrier.shut(finish, cancel_pending=self.attrs["cancel_pending_enqueues"])


@kernel("BarrierReadySize")
def barrier_ready_size(ctx: OpKernelContext) -> None:
    """Output the number of complete elements."""
    ctx.set_output(0, np.array(resource_of(ctx, Barrier).ready_size, np.int32))


@kernel("BarrierIncompleteSize")
def barrier_incomplete_size(ctx: OpKernelContext) -> None:
    """Output the number of incomplete elements."""
    ctx.set_output(0, np.array(resource_of(ctx, Barrier).incomplete_size, np.int32))
