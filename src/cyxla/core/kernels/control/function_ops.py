"""Arguments and results of functions, and conversions between lists and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel, kernel
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.errors import InternalError

Array = np.ndarray[Any, Any]


@kernel(("_Arg", "_DeviceArg"))
def arg(ctx: OpKernelContext) -> None:
    """Output an argument of the call frame."""
    frame, index = ctx.call_frame, ctx.attr("index")
    ctx.require(frame is not None, "_Arg outside of a function call", error=InternalError)
    ctx.require(index < len(frame.args), f"argument {index} is missing: {len(frame.args)} were given")
    value = frame.args[index]
    dtype = ctx.expected_output_dtype(0)
    ctx.require(value.dtype == dtype.numpy, f"argument {index} is {value.dtype}, but the function takes {dtype}")
    ctx.set_output(0, value)


@kernel(("_Retval", "_DeviceRetval"))
def retval(ctx: OpKernelContext) -> None:
    """Store the value in the results of the call frame."""
    ctx.require(ctx.call_frame is not None, "_Retval outside of a function call", error=InternalError)
    ctx.call_frame.results[ctx.attr("index")] = ctx.input(0)


@array_kernel(("_ArrayToList", "_ListToArray"))
def _regroup(input: list[Array]) -> list[Array]:
    return input


@array_kernel("_EagerConst")
def _constant(input: Array) -> Array:
    return input
