"""Tensors that a session keeps between runs."""

from __future__ import annotations

import numpy as np

from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel_context import OpKernelContext, as_value
from cyxla.core.framework.resource_mgr import ResourceHandle
from cyxla.core.framework.step.session_state import TENSOR_HANDLE, SessionState
from cyxla.core.framework.types import DataType
from cyxla.errors import FailedPreconditionError, InvalidArgumentError


def _state(ctx: OpKernelContext) -> SessionState:
    if ctx.session_state is None:
        raise FailedPreconditionError(
            f"{ctx.op_kernel.type_string} called on null session state", hint="run it in a session"
        )
    return ctx.session_state


def _handle(ctx: OpKernelContext) -> str:
    handle = ctx.input("handle")
    if handle.ndim:
        raise InvalidArgumentError(f"the handle of a tensor is a scalar; its shape is {list(handle.shape)}")
    return bytes(handle.item()).decode("utf-8", "surrogateescape")


@kernel(("GetSessionHandle", "GetSessionHandleV2"), host_memory=("handle",))
def get_session_handle(ctx: OpKernelContext) -> None:
    """Ask the session to keep the value if its handle is fetched, and output the handle."""
    op, number = ctx.op_kernel, _state(ctx).new_id()
    value = ctx.input("value").copy()
    value.flags.writeable = False
    handle = ctx.tensor_store.add_tensor(op.name, number, op.requested_device, value)
    if ctx.expected_output_dtype(0) == DataType.DT_RESOURCE:
        resource = ResourceHandle(ctx.device.name, ctx.resource_manager.default_container, handle, TENSOR_HANDLE)
        ctx.set_output(0, as_value(resource))
    else:
        ctx.set_output(0, np.array(handle.encode("utf-8", "surrogateescape"), np.object_))


@kernel("GetSessionTensor", host_memory=("handle",))
def get_session_tensor(ctx: OpKernelContext) -> None:
    """Output a tensor that the session keeps."""
    value, dtype = _state(ctx).get_tensor(_handle(ctx)), ctx.expected_output_dtype(0)
    if value.dtype != dtype.numpy:
        raise InvalidArgumentError(f"the tensor with handle '{_handle(ctx)}' is of {value.dtype}, not of {dtype}")
    ctx.set_output(0, value)


@kernel("DeleteSessionTensor", host_memory=("handle",))
def delete_session_tensor(ctx: OpKernelContext) -> None:
    """Drop a tensor that the session keeps."""
    _state(ctx).delete_tensor(_handle(ctx))
