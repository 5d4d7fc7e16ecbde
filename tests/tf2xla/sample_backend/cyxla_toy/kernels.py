"""Types of the processor, ops that it excludes, and its own kernels."""

from typing import Any

import numpy as np

from cyxla.core.framework.kernel_def import KernelDef
from cyxla.core.framework.types import DataType
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel
from cyxla.xla.hlo.builder import functions as xla

TYPES = (DataType.DT_FLOAT, DataType.DT_INT32, DataType.DT_INT64, DataType.DT_BOOL)
MAX_POOL_GRAD = "toy.max_pool_grad"


def op_filter(kernel_def: KernelDef) -> bool:
    """Exclude ops that need opcodes which the processor lacks."""
    return "FFT" not in kernel_def.op


def register() -> None:
    """Kernels in the place of the generic ones."""
    xla_kernel("MaxPoolGrad", device="XLA_TOY_JIT")(max_pool_grad)


def max_pool_grad(ctx: XlaOpKernelContext) -> Any:
    """One call of a routine, where other backends select and scatter."""
    sizes, steps = (",".join(map(str, ctx.attr(name))) for name in ("ksize", "strides"))
    ctx.require(ctx.attr("padding") == "VALID" and ctx.attr("data_format") == "NHWC", "the toy pools NHWC, VALID")
    operands = [ctx.input(name) for name in ("orig_input", "grad")]
    return xla.custom_call(ctx.builder, MAX_POOL_GRAD, operands, operands[0].shape, f"{sizes};{steps}")


def run_max_pool_grad(opaque: str, x: np.ndarray[Any, Any], grad: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The routine: each gradient goes to the first greatest element of its window."""
    (_, high, wide, _), (_, down, right, _) = (map(int, part.split(",")) for part in opaque.split(";"))
    found = np.zeros_like(x)
    batch, features = np.ogrid[: x.shape[0], : x.shape[3]]
    for i, j in np.ndindex(*grad.shape[1:3]):
        rows, columns = i * down, j * right
        window = x[:, rows : rows + high, columns : columns + wide].reshape(x.shape[0], high * wide, x.shape[3])
        row, column = np.divmod(window.argmax(1), wide)
        np.add.at(found, (batch, rows + row, columns + column, features), grad[:, i, j])
    return found
