"""Checks and prints, which compiled code leaves out."""

from __future__ import annotations

from typing import Any

from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel


@xla_kernel("Assert", string=True)
def _assert(ctx: XlaOpKernelContext) -> Any:
    """Nothing: compiled code cannot stop."""


@xla_kernel("CheckNumerics")
def _check_numerics(ctx: XlaOpKernelContext) -> Any:
    """The input as it is."""
    ctx.set_output_expression(0, ctx.input_expression(0))
