"""Assertions, printing and the clock."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel, kernel
from cyxla.core.framework.numeric_limits import wide_type
from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.kernels.lib.tensor_text import summary
from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.forking import new_lock

Array = np.ndarray[Any, Any]


@kernel("Assert")
def _assert(ctx: OpKernelContext) -> None:
    condition = ctx.input("condition")
    if condition.ndim:
        raise ShapeError(f"the condition must be a scalar; its shape is {list(condition.shape)}")
    if not condition:
        text = " ".join(summary(x, ctx.attr("summarize")) for x in ctx.input_list("data"))
        raise InvalidArgumentError(f"assertion failed: {text}")


@array_kernel("CheckNumerics", attrs=("message",))
def _check_numerics(x: Array, *, message: str) -> Array:
    wide = x.astype(wide_type(x.dtype), copy=False)
    if np.isfinite(wide).all():
        return x
    kinds = [name for name, test in (("Inf", np.isinf), ("NaN", np.isnan)) if test(wide).any()]
    raise InvalidArgumentError(f"{message} : the tensor had {' and '.join(kinds)} values")


@kernel("Print")
class Print(OpKernel):
    """Kernel that forwards its input and prints its other inputs in the first few runs."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._num_prints_left = construction.get_attr("first_n")
        self._lock = new_lock()

    def compute(self, ctx: OpKernelContext) -> None:
        """Print to standard error."""
        with self._lock:
            enabled = self._num_prints_left != 0
            self._num_prints_left -= self._num_prints_left > 0
        if enabled:
            text = "".join(summary(x, ctx.attr("summarize")) for x in ctx.input_list("data"))
            print(ctx.attr("message") + text, file=sys.stderr)
        ctx.set_output(0, ctx.input(0))


@kernel("PrintV2")
def _print(ctx: OpKernelContext) -> None:
    """Print to a stream of the process, or append to a ``file://`` path."""
    text = ctx.input(0)
    if text.ndim:
        raise ShapeError(f"the text must be a scalar; its shape is {list(text.shape)}")
    line, end, stream = text[()].decode(errors="replace"), ctx.attr("end"), ctx.attr("output_stream")
    if stream.startswith("file://"):
        with ctx.env.new_appendable_file(stream.removeprefix("file://")) as file:
            file.append((line + end).encode())
    elif stream in ("stdout", "stderr"):
        print(line, end=end, file=getattr(sys, stream))
    elif stream.startswith("log("):
        print(line, end=end, file=sys.stderr)
    else:
        raise InvalidArgumentError(f"output_stream is {stream!r}", hint='use "stdout", "stderr" or "file://..."')


@kernel("Timestamp")
def _timestamp(ctx: OpKernelContext) -> None:
    """Return the seconds since 1970."""
    ctx.set_output(0, np.array(ctx.env.now_micros() / 1e6))
