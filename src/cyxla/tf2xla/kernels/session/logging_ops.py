"""Assertions and printing, which compiled code omits."""

from __future__ import annotations

from typing import Any

from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel


@xla_kernel("Assert")
def _assert(ctx: XlaOpKernelContext) -> Any:
    """Emit nothing: compiled code cannot fail."""


@xla_kernel("CheckNumerics")
def _check_numerics(ctx: XlaOpKernelContext) -> Any:
    """Forward the input."""
    ctx.set_output_expression(0, ctx.input_expression(0))
