"""Operations across the devices of a process."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel import AsyncOpKernel, Done, OpKernelConstruction, located
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.kernels.lib.integer_division import truncate_div
from cyxla.errors import InvalidArgumentError, OpError

Array = np.ndarray[Any, Any]
_MERGE: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add, "Mul": np.multiply, "Min": np.minimum, "Max": np.maximum,
    "sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def combine(merge: str, final: str, values: Sequence[Array]) -> Array:
    """Merge the values of a group, and apply the final operation."""
    with np.errstate(all="ignore"):
        merged = np.asarray(reduce(_MERGE[merge], values), values[0].dtype)
        if final == "Id":
            return merged
        size = np.array(len(values), merged.dtype)
        return truncate_div(merged, size) if merged.dtype.kind == "i" else np.asarray(merged / size, merged.dtype)


class _CollectiveOp(AsyncOpKernel):
    """Base class of kernels that contribute to an operation of a group."""

    def contribute(self, ctx: OpKernelContext, key: Hashable, size: int, final: str, merge: str, done: Done) -> None:
        """Contribute the input, and output the result."""

        def finish(error: OpError | None, value: Any) -> None:
            if error is not None:
                ctx.set_status(located(error, self))
            else:
                ctx.set_output(0, value)
            done()

        ctx.collective_executor.combine_async(
            key, size, ctx.device.name, ctx.input("input"), partial(combine, merge, final), finish,
            ctx.cancellation_manager, self.attrs.get("timeout_seconds", 0.0),
        )  # fmt: skip


@kernel("CollectiveReduceV2")
class CollectiveReduceV2Op(_CollectiveOp):
    """Kernel that reduces the values of all devices of a group."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.merge, self.final = self.attrs["merge_op"], self.attrs["final_op"]

    def compute_async(self, ctx: OpKernelContext, done: Done) -> None:
        """Contribute the input to the instance of the group."""
        size, group, instance = (_number(ctx, name) for name in ("group_size", "group_key", "instance_key"))
        ctx.require(size > 0, f"group_size must be positive integer but got {size}")
        self.contribute(ctx, (group, instance), size, self.final, self.merge, done)


@kernel("NcclAllReduce")
class NcclAllReduceOp(_CollectiveOp):
    """Kernel that reduces the values of the devices that share a name."""

    def compute_async(self, ctx: OpKernelContext, done: Done) -> None:
        """Contribute the input to the group of the name."""
        size = self.attrs["num_devices"]
        self.contribute(ctx, self.attrs["shared_name"], size, "Id", self.attrs["reduction"], done)


def _number(ctx: OpKernelContext, name: str) -> int:
    value = ctx.input(name)
    if value.ndim:
        raise InvalidArgumentError(f"Unexpected dimensions on input {name}")
    return int(value)


@kernel("CollectiveAssignGroupV2")
def collective_assign_group(ctx: OpKernelContext) -> None:
    """Output the size and the key of the group that contains a device."""
    groups, device, base = ctx.input("group_assignment"), ctx.input("device_index"), ctx.input("base_key")
    ctx.require(groups.ndim == 2, f"group_assignment must be a matrix; its shape is {list(groups.shape)}")
    ctx.require(device.ndim == 0, "device_index must be a 0-D Tensor.")
    ctx.require(base.ndim == 0, "base_key must be a 0-D Tensor.")
    rows = np.flatnonzero((groups == device).any(axis=1))
    ctx.require(len(rows), f"device_index {int(device)} is not found in group_assignment {groups.tolist()}")
    ctx.set_output(0, np.array(groups.shape[1], np.int32))
    ctx.set_output(1, np.array(int(base) + int(rows[0]), np.int32))
