"""Scatters into variables."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.types import DataType
from cyxla.tf2xla.lib.gather_scatter import scatter_nd, scatter_rows
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel


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
