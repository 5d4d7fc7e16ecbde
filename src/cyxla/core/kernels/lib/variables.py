"""Values of variables, and assignments to slices of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.geometry.strided_slices import MASKS, strided_index
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.variable import Var
from cyxla.errors import FailedPreconditionError, InvalidArgumentError

Array = np.ndarray[Any, Any]


def initialized(variable: Var, ctx: OpKernelContext, index: int) -> Array:
    """Return the value of a variable that must be initialised.

    Raises
    ------
    FailedPreconditionError
        The variable has no value.
    """
    if variable.value is None:
        names = ctx.op_kernel.requested_inputs
        name = names[index] if index < len(names) else str(index)
        raise FailedPreconditionError(f"the variable {name} has no value yet", hint="run their initializers first")
    return variable.value


def assign_slice(ctx: OpKernelContext, variable: Any, shape: tuple[int, ...]) -> None:
    """Assign the fifth input to the slice of a variable given by the others; the caller holds its lock."""
    masks = {name: ctx.attr(name) for name in MASKS}
    index = strided_index(shape, ctx.input(1), ctx.input(2), ctx.input(3), masks)
    value, part = ctx.input(4), variable.value[index].shape
    if 0 in part:
        return
    if not _is_broadcastable(value.shape, part):
        raise InvalidArgumentError(f"the value {list(value.shape)} cannot be repeated to fill the slice {list(part)}")
    variable.writable()[index] = value


def _is_broadcastable(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False
