"""Nodes that only order other nodes."""

from __future__ import annotations

from typing import Any

from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel


@xla_kernel(("NoOp", "ControlTrigger"))
def _nothing(ctx: XlaOpKernelContext) -> Any:
    """Emit nothing: the order of a program is that of its data dependences."""


@xla_kernel("LoopCond")
def _loop_cond(ctx: XlaOpKernelContext) -> Any:
    ctx.set_output_expression(0, ctx.input_expression(0))
