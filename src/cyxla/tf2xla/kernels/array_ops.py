"""Making arrays, asking for their shapes, diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel


@xla_kernel("Const", string=True)
def _const(ctx: XlaOpKernelContext) -> Any:
    """The value itself: it becomes an instruction only where one is needed."""
    ctx.set_constant_output(0, ctx.attr("value").array)


@xla_kernel(
    ("Identity", "StopGradient", "PreventGradient", "Snapshot", "PlaceholderWithDefault"),
    resource=True,
    variant=True,
    string=True,
)
def _identity(ctx: XlaOpKernelContext) -> Any:
    """What came in."""
    ctx.set_output_expression(0, ctx.input_expression(0))


@xla_kernel("Shape", metadata=True)
def _shape(ctx: XlaOpKernelContext) -> Any:
    """A constant: shapes are known while compiling."""
    ctx.set_constant_output(0, np.array(ctx.input_shape(0)))
