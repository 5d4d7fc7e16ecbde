"""Scatters into variables."""

from __future__ import annotations

from math import prod
from typing import Any

from cyxla.core.framework.types import DataType
from cyxla.errors import ShapeError
from cyxla.tf2xla.kernels.array_slice_ops import scatter_nd, update_computation
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import broadcast_to, sizes_of


def scatter_rows(target: XlaOp, indices: XlaOp, updates: XlaOp, op: str) -> XlaOp:
    """Emit a scatter of rows or of a single number; indices out of range are skipped."""
    rest = sizes_of(target)[1:]
    want = (*sizes_of(indices), *rest)
    if sizes_of(updates) and sizes_of(updates) != want:
        raise ShapeError(
            f"updates {list(sizes_of(updates))} for rows {list(sizes_of(indices))} of {list(sizes_of(target))}"
        )
    if not prod(want) or not prod(sizes_of(target)):
        return target
    batch = len(sizes_of(indices))
    return xla.scatter(
        target,
        indices,
        broadcast_to(updates, want),
        update_computation(op, target.shape.dtype),
        update_window_dims=tuple(range(batch, len(want))),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=batch,
    )


def _register(name: str, op: str, scatter: Any, dtype_attr: str) -> None:
    @xla_kernel(name)
    def kernel(ctx: XlaOpKernelContext) -> Any:
        dtype: DataType = ctx.attr(dtype_attr)
        value = ctx.read_variable_input(0, dtype)
        ctx.assign_variable(0, dtype, scatter(value, ctx.input("indices"), ctx.input("updates"), op))


for _name in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max"):
    _register("ResourceScatter" + _name, _name.lower(), scatter_rows, "dtype")
for _name in ("Update", "Add", "Sub"):
    _register("ResourceScatterNd" + _name, _name.lower(), scatter_nd, "T")
