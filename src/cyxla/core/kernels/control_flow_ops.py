"""Switches, merges and loop frames.

Executors move these values themselves: they know which branch is dead and which iteration a value belongs to. The
kernels here say what one node does with the values it is given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel, kernel
from cyxla.core.framework.op_kernel_context import OpKernelContext

Array = np.ndarray[Any, Any]


@array_kernel(("Enter", "Exit", "NextIteration"))
def _pass(data: Array) -> Array:
    return data


@kernel(("RefEnter", "RefExit", "RefNextIteration", "RefIdentity"))
def _pass_ref(ctx: OpKernelContext) -> None:
    ctx.forward_ref_input_to_ref_output(0, 0)


@array_kernel("LoopCond")
def _loop_cond(input: Array) -> Array:
    return input


@array_kernel(("NoOp", "ControlTrigger"))
def _nothing() -> tuple[Array, ...]:
    return ()


@kernel("Switch")
def switch(ctx: OpKernelContext) -> None:
    """The value goes to the output that the predicate names; the other one stays dead."""
    ctx.set_output(_branch(ctx), ctx.input(0))


@kernel("RefSwitch")
def ref_switch(ctx: OpKernelContext) -> None:
    """As `switch`, for a reference."""
    ctx.set_output_ref(_branch(ctx), ctx.mutable_input(0))


def _branch(ctx: OpKernelContext) -> int:
    pred = ctx.input(1)
    ctx.require(pred.ndim == 0, f"The second input must be a scalar, but it has shape {list(pred.shape)}")
    return int(bool(pred))


@kernel(("Merge", "RefMerge"))
def merge(ctx: OpKernelContext) -> None:
    """The input that came, and its number."""
    for i in range(ctx.num_inputs):
        if ctx.has_input(i):
            if ctx.input_is_ref(i) and ctx.op_kernel.output_types[0].is_ref:
                ctx.set_output_ref(0, ctx.mutable_input(i))
            else:
                ctx.set_output(0, ctx.input(i))
            ctx.set_output(1, np.array(i, np.int32))
            return


@kernel("RefSelect")
def ref_select(ctx: OpKernelContext) -> None:
    """The reference of that number."""
    index = ctx.input("index")
    ctx.require(index.ndim == 0, f"Index must be a scalar, but it has shape {list(index.shape)}")
    refs = ctx.mutable_input_list("inputs")
    ctx.require(0 <= int(index) < len(refs), f"index {int(index)} names none of {len(refs)} inputs")
    ctx.set_output_ref(0, refs[int(index)])
