"""Nodes that only order others."""

from __future__ import annotations

from typing import Any

from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel


@xla_kernel(("NoOp", "ControlTrigger"))
def _nothing(ctx: XlaOpKernelContext) -> Any:
    """No instruction: a program's order is that of its data."""


@xla_kernel("LoopCond")
def _loop_cond(ctx: XlaOpKernelContext) -> Any:
    ctx.set_output_expression(0, ctx.input_expression(0))
