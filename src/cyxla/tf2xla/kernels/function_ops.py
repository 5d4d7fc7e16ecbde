"""Arguments, results, and lists that are one list."""

from __future__ import annotations

from typing import Any

from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel


@xla_kernel(("_ArrayToList", "_ListToArray"))
def _flat(ctx: XlaOpKernelContext) -> Any:
    """The values themselves."""
    for i in range(ctx.num_inputs):
        ctx.set_output_expression(i, ctx.input_expression(i))
