"""Switch, merge and loop frames.

Executors route these values themselves, since they track dead branches and iterations. These kernels define the effect
of a single node on its inputs.
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
    """Forward the value to the output selected by the predicate; the other output stays dead."""
    ctx.set_output(_branch(ctx), ctx.input(0))


@kernel("RefSwitch")
def ref_switch(ctx: OpKernelContext) -> None:
    """Forward a reference as `switch` does."""
    ctx.set_output_ref(_branch(ctx), ctx.mutable_input(0))


def _branch(ctx: OpKernelContext) -> int:
    pred = ctx.input(1)
    ctx.require(pred.ndim == 0, f"The second input must be a scalar, but it has shape {list(pred.shape)}")
    return int(bool(pred))


@kernel(("Merge", "RefMerge"))
def merge(ctx: OpKernelContext) -> None:
    """Forward the input that is alive, and its index."""
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
    """Forward the reference at an index."""
    index = ctx.input("index")
    ctx.require(index.ndim == 0, f"Index must be a scalar, but it has shape {list(index.shape)}")
    refs = ctx.mutable_input_list("inputs")
    ctx.require(0 <= int(index) < len(refs), f"index {int(index)} is out of range for {len(refs)} inputs")
    ctx.set_output_ref(0, refs[int(index)])
