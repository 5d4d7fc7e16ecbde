"""Transfers between devices through the rendezvous of the step."""

from __future__ import annotations

from typing import Any
from zlib import crc32

from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel import AsyncOpKernel, Done, OpKernel, OpKernelConstruction
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.step.rendezvous import create_key
from cyxla.errors import InternalError, OpError

_ATTRS = ("send_device", "send_device_incarnation", "recv_device", "tensor_name")


def _key(attrs: Any, ctx: OpKernelContext) -> str:
    """Return the rendezvous key of an edge in the current iteration of its loop frame."""
    frame, iteration = ctx.frame_iter
    number = crc32(frame.encode("utf-8", "surrogateescape")) if frame else 0
    source, incarnation, target, edge = (attrs[name] for name in _ATTRS)
    return create_key(source, incarnation, target, edge, (number, iteration))


def _rendezvous(ctx: OpKernelContext) -> Any:
    if ctx.rendezvous is None:
        raise InternalError(f"{ctx.op_kernel.type_string} runs in a step without a rendezvous")
    return ctx.rendezvous


@kernel(("_Send", "_HostSend"), device="DEFAULT")
class SendOp(OpKernel):
    """Kernel that sends a value, or a dead signal, without blocking."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Pass the value to the rendezvous."""
        value = None if ctx.is_input_dead else ctx.input(0)
        _rendezvous(ctx).send(_key(self.attrs, ctx), value, ctx.is_input_dead)


@kernel(("_Recv", "_HostRecv"), device="DEFAULT")
class RecvOp(AsyncOpKernel):
    """Kernel that waits for a value."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.is_expensive = False

    def compute_async(self, ctx: OpKernelContext, done: Done) -> None:
        """Set the output when the value arrives; leave it unset if the value is dead."""

        def received(error: OpError | None, value: Any, is_dead: bool) -> None:
            if error is not None:
                ctx.set_status(error)
            elif not is_dead:
                ctx.set_output(0, value)
            done()

        _rendezvous(ctx).recv_async(_key(self.attrs, ctx), received, ctx.cancellation_manager)
