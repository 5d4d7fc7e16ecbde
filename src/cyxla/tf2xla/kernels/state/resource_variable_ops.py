"""Variables, which are read before and written after the program, and are values in between."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.geometry.strided_slices import MASKS
from cyxla.core.framework.types import NUMBER, DataType
from cyxla.errors import ShapeError
from cyxla.tf2xla.lib.gather_scatter import gather_slices
from cyxla.tf2xla.lib.strided_slices import strided_update
from cyxla.tf2xla.lib.tiles import concatenate_tiles, split_tiles
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.lib.values import sizes_of


@xla_kernel("ReadVariableOp")
def _read(ctx: XlaOpKernelContext) -> Any:
    return ctx.read_variable_input(0, ctx.attr("dtype"))


@xla_kernel("_ReadVariablesOp")
def _read_all(ctx: XlaOpKernelContext) -> Any:
    return [ctx.read_variable_input(i, t) for i, t in enumerate(ctx.attr("dtypes"))]


@xla_kernel("AssignVariableOp")
def _assign(ctx: XlaOpKernelContext) -> Any:
    ctx.assign_variable(0, ctx.attr("dtype"), ctx.input(1))


def _assign_updated(ctx: XlaOpKernelContext, value: XlaOp) -> None:
    ctx.assign_variable(0, ctx.attr("dtype"), value)


def _operands(ctx: XlaOpKernelContext) -> tuple[XlaOp, XlaOp]:
    value, delta = ctx.read_variable_input(0, ctx.attr("dtype")), ctx.input(1)
    if sizes_of(value) != sizes_of(delta):
        raise ShapeError(f"a variable of {list(sizes_of(value))} cannot change by {list(sizes_of(delta))}")
    return value, delta


@xla_kernel("AssignAddVariableOp", types={"dtype": NUMBER})
def _assign_add(ctx: XlaOpKernelContext) -> Any:
    value, delta = _operands(ctx)
    _assign_updated(ctx, value + delta)


@xla_kernel("AssignSubVariableOp", types={"dtype": NUMBER})
def _assign_sub(ctx: XlaOpKernelContext) -> Any:
    value, delta = _operands(ctx)
    _assign_updated(ctx, value - delta)


@xla_kernel("VarIsInitializedOp")
def _is_initialized(ctx: XlaOpKernelContext) -> Any:
    ctx.set_constant_output(0, np.array(ctx.input_resource(0).is_initialized))


@xla_kernel("VariableShape", metadata=True)
def _variable_shape(ctx: XlaOpKernelContext) -> Any:
    """Output a constant: the shape of the current value."""
    value = ctx.input_resource(0).read()
    out: DataType = ctx.attr("out_type")
    ctx.set_constant_output(0, np.array(sizes_of(value), out.numpy))


@xla_kernel("DestroyResourceOp")
def _destroy(ctx: XlaOpKernelContext) -> Any:
    """Emit nothing: the variable belongs to the caller."""


@xla_kernel("ResourceGather")
def _gather(ctx: XlaOpKernelContext) -> Any:
    """Gather rows of the variable."""
    value = ctx.read_variable_input(0, ctx.attr("dtype"))
    batch = ctx.attr("batch_dims")
    return gather_slices(value, ctx.input(1), batch, batch)


@xla_kernel("ResourceStridedSliceAssign", const=("begin", "end", "strides"))
def _strided_assign(ctx: XlaOpKernelContext) -> Any:
    """Replace a strided slice of the variable."""
    dtype: DataType = ctx.attr("T")
    value = ctx.read_variable_input(0, dtype)
    begin, end, strides = (ctx.constant_input(name) for name in ("begin", "end", "strides"))
    masks = {name: ctx.attr(name) for name in MASKS}
    ctx.assign_variable(0, dtype, strided_update(value, begin, end, strides, ctx.input("value"), masks))


@xla_kernel("ReadVariableXlaSplitND")
def _split_nd(ctx: XlaOpKernelContext) -> Any:
    """Emit one slice of the variable per tile."""
    value = ctx.read_variable_input(0, ctx.attr("T"))
    return split_tiles(value, ctx.attr("num_splits"), ctx.attr("paddings"))


@xla_kernel("AssignVariableXlaConcatND")
def _concat_nd(ctx: XlaOpKernelContext) -> Any:
    """Concatenate tiles along all dimensions."""
    tiles = ctx.input_list("inputs")
    ctx.assign_variable(0, ctx.attr("T"), concatenate_tiles(tiles, ctx.attr("num_concats"), ctx.attr("paddings")))
