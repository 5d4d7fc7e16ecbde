"""Constants, placeholders and identities."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction, array_kernel, kernel
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]


@kernel("Const")
class ConstantOp(OpKernel):
    """A value that the node holds."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        value, dtype = construction.get_attr("value", "tensor"), construction.get_attr("dtype")
        construction.require(value.dtype == dtype, f"the value is {value.dtype}, but the constant is declared {dtype}")
        self.const_tensor = construction.device.make_tensor(value)

    def compute(self, ctx: OpKernelContext) -> None:
        """Give the value."""
        ctx.set_output(0, self.const_tensor)


@kernel(("Placeholder", "PlaceholderV2"))
def placeholder(ctx: OpKernelContext) -> None:
    """Stands for a value that the caller feeds."""
    kernel_ = ctx.op_kernel
    raise InvalidArgumentError(
        f"You must feed a value for placeholder tensor '{kernel_.name}' with dtype {kernel_.output_types[0]} "
        f"and shape {kernel_.attrs['shape']}",
        hint=f"run(fetches, {{'{kernel_.name}:0': array}})",
    )


@array_kernel(("Identity", "StopGradient", "PlaceholderWithDefault", "Snapshot"))
def identity(x: Array) -> Array:
    """The input itself."""
    return x
