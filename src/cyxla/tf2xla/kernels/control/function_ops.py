"""Arguments, results and list conversions of functions."""

from __future__ import annotations

from typing import Any

from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel


@xla_kernel(("_Arg", "_DeviceArg"), resource=True, variant=True)
def _arg(ctx: XlaOpKernelContext) -> Any:
    """Output an argument of the graph: a parameter, a constant, a resource or a list."""
    ctx.set_output_expression(0, ctx.xla.args[ctx.attr("index")])


@xla_kernel(("_Retval", "_DeviceRetval"), resource=True, variant=True)
def _retval(ctx: XlaOpKernelContext) -> Any:
    """Store a result of the graph: an element of the result tuple, or a constant."""
    ctx.xla.retvals[ctx.attr("index")] = ctx.input_expression(0)


@xla_kernel("_EagerConst")
def _eager_const(ctx: XlaOpKernelContext) -> Any:
    """Forward the input, which is a constant to eager execution only."""
    ctx.set_output_expression(0, ctx.input_expression(0))


@xla_kernel(("_ArrayToList", "_ListToArray"))
def _flat(ctx: XlaOpKernelContext) -> Any:
    """Forward the values."""
    for i in range(ctx.num_inputs):
        ctx.set_output_expression(i, ctx.input_expression(i))
