"""Resource variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.op_kernel_context import OpKernelContext, as_value
from cyxla.core.framework.resource_mgr import DEFAULT_CONTAINER, ResourceBase, ResourceHandle, type_name
from cyxla.core.framework.types import NUMBER, DataType
from cyxla.core.framework.variable import Var
from cyxla.core.kernels.lib.scatter import check_indices
from cyxla.core.kernels.lib.variables import assign_slice, initialized
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError

Array = np.ndarray[Any, Any]
ANONYMOUS = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"  # shared name of variables whose lifetime is that of their handle


@kernel("VarHandleOp")
class VarHandle(OpKernel):
    """Kernel that outputs the handle of a variable: a constant, unless the variable is anonymous."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        name, container = construction.get_attr("shared_name"), construction.get_attr("container")
        dtype = construction.get_attr("dtype")
        dtypes_and_shapes = ((dtype, construction.get_attr("shape")),)
        self._parts = (
            construction.device.name,
            container or DEFAULT_CONTAINER,
            name,
            type_name(Var),
            dtypes_and_shapes,
        )
        self._dtype: DataType = dtype
        self.const_tensor = None if name == ANONYMOUS else as_value(ResourceHandle(*self._parts))

    def compute(self, ctx: OpKernelContext) -> None:
        """Output the handle."""
        handle = self.const_tensor
        if handle is None:
            handle = as_value(ResourceHandle(*self._parts, resource=Var(self._dtype)))
        ctx.set_output(0, handle)


@kernel("_VarHandlesOp")
def var_handles(ctx: OpKernelContext) -> None:
    """Output the handles of several variables."""
    rows = zip(*(ctx.attr(n) for n in ("containers", "shared_names", "dtypes", "shapes")), strict=True)
    handles = [ctx.make_handle(container, name, Var, ((dtype, shape),)) for container, name, dtype, shape in rows]
    ctx.set_output_list("resources", handles)


def read_variable(ctx: OpKernelContext, index: int, dtype: DataType) -> Array:
    """Return the value of a variable of the expected type.

    Raises
    ------
    FailedPreconditionError
        The variable was never assigned, or is deleted.
    InvalidArgumentError
        The variable has another type.
    """
    handle = ctx.resource_handle(index)
    try:
        variable = ctx.lookup_resource(handle, Var)
    except NotFoundError:
        variable = None
    value = None if variable is None else variable.read()
    if variable is None or value is None:
        raise FailedPreconditionError(
            f"the variable {handle.name} has no value: it was never assigned, or was destroyed",
            hint="run its initializer first",
        )
    _check_dtype("read", variable, dtype)
    return value


def _check_dtype(verb: str, variable: Var, dtype: DataType) -> None:
    if variable.dtype != dtype:
        raise InvalidArgumentError(f"the op would {verb} {dtype}, but the variable holds {variable.dtype}")


@kernel("DisableCopyOnRead")
def disable_copy_on_read(ctx: OpKernelContext) -> None:
    """Check that the variable exists: its reads share memory in any case."""
    ctx.lookup_resource(ctx.resource_handle(0), Var)


@kernel("ReadVariableOp")
def read_variable_op(ctx: OpKernelContext) -> None:
    """Output the current value."""
    ctx.set_output(0, read_variable(ctx, 0, ctx.attr("dtype")))


@kernel("_ReadVariablesOp")
def read_variables_op(ctx: OpKernelContext) -> None:
    """Output the values of several variables."""
    ctx.set_output_list("values", [read_variable(ctx, i, dtype) for i, dtype in enumerate(ctx.attr("dtypes"))])


@kernel("AssignVariableOp")
def assign_variable(ctx: OpKernelContext) -> None:
    """Assign a value to the variable, which is created if missing."""
    value, dtype = ctx.input(1), ctx.attr("dtype")
    variable = ctx.lookup_or_create_resource(0, Var, lambda: Var(dtype))
    _check_dtype("assign", variable, dtype)
    with variable.lock:
        old = variable.value
        if ctx.attr("validate_shape") and old is not None and old.shape != value.shape:
            raise InvalidArgumentError(
                f"the variable has the shape {list(old.shape)}, the value {list(value.shape)}",
                hint="assign with validate_shape=false to change the shape",
            )
        variable.assign(value)


_UPDATE = {"AssignAddVariableOp": np.add, "AssignSubVariableOp": np.subtract}


@kernel(tuple(_UPDATE), types={"dtype": NUMBER})
def assign_update(ctx: OpKernelContext) -> None:
    """Add the value to the variable, or subtract it."""
    value = ctx.input(1)
    variable = ctx.lookup_resource(0, Var)
    _check_dtype("update", variable, ctx.attr("dtype"))
    with variable.lock, np.errstate(all="ignore"):
        old = initialized(variable, ctx, 0)
        if old.shape != value.shape:
            raise InvalidArgumentError(
                f"the variable has the shape {list(old.shape)}, the value {list(value.shape)}: they must be equal"
            )
        _UPDATE[ctx.op_kernel.type_string](old, value, out=variable.writable())


@kernel("VarIsInitializedOp")
def var_is_initialized(ctx: OpKernelContext) -> None:
    """Return whether the variable exists and has a value."""
    try:
        is_initialized = ctx.lookup_resource(0, Var).is_initialized
    except NotFoundError:
        is_initialized = False
    ctx.set_output(0, np.array(is_initialized))


@kernel("VariableShape")
def variable_shape(ctx: OpKernelContext) -> None:
    """Output the shape of the value."""
    value = initialized(ctx.lookup_resource(0, Var), ctx, 0)
    ctx.set_output(0, np.array(value.shape, ctx.attr("out_type").numpy))


@kernel("DestroyResourceOp")
def destroy_resource(ctx: OpKernelContext) -> None:
    """Remove a resource of any kind."""
    try:
        ctx.delete_resource(0)
    except NotFoundError:
        if not ctx.attr("ignore_lookup_error"):
            raise


class Mutex(ResourceBase):
    """Named lock."""


@kernel("MutexV2")
def mutex(ctx: OpKernelContext) -> None:
    """Output the handle of a lock, which is created if missing."""
    name = ctx.attr("shared_name") or ctx.op_kernel.name
    handle = ctx.make_handle(ctx.attr("container"), name, Mutex)
    ctx.lookup_or_create_resource(handle.item(), Mutex, Mutex)
    ctx.set_output(0, handle)


@kernel("ResourceGather")
def resource_gather(ctx: OpKernelContext) -> None:
    """Gather rows of the variable at the given indices, per batch."""
    params, indices, batch = _gather_operand(ctx), ctx.input("indices"), ctx.attr("batch_dims")
    rank = indices.ndim
    if batch < 0:
        ctx.require(-rank <= batch, f"batch_dims is {batch}, but indices have {rank} dimensions")
        batch += rank
    ctx.require(batch <= rank, f"batch_dims ({batch}) must be at most the rank of indices ({rank})")
    ctx.require(params.ndim > batch, f"the variable {list(params.shape)} has no rows behind batch_dims={batch}")
    heads = params.shape[:batch], indices.shape[:batch]
    ctx.require(
        heads[0] == heads[1], f"the batch dimensions of params {list(heads[0])} and indices {list(heads[1])} differ"
    )
    check_indices(indices, params.shape[batch])
    batch_indices = np.ogrid[tuple(slice(n) for n in heads[0])] if batch else ()
    columns = tuple(p.reshape(p.shape + (1,) * (rank - batch)) for p in batch_indices)
    ctx.set_output(0, params[(*columns, indices)])


@kernel("ResourceGatherNd")
def resource_gather_nd(ctx: OpKernelContext) -> None:
    """Gather slices of the variable at the given indices."""
    params, indices = _gather_operand(ctx), ctx.input("indices")
    ctx.require(indices.ndim >= 1, "indices must have at least one dimension: the last one holds the coordinates")
    depth = indices.shape[-1]
    ctx.require(depth <= params.ndim, f"{depth} coordinates are too many for a variable of rank {params.ndim}")
    bad = ((indices < 0) | (indices >= np.array(params.shape[:depth], np.int64))).any(axis=-1)
    if bad.any():
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InvalidArgumentError(
            f"indices{list(index) or ''} = {indices[index].tolist()} lies outside of the shape {list(params.shape)}"
        )
    if depth:
        picked = params[tuple(np.moveaxis(indices, -1, 0))]
    else:
        picked = np.broadcast_to(params, indices.shape[:-1] + params.shape).copy()
    ctx.set_output(0, picked)


def _gather_operand(ctx: OpKernelContext) -> Array:
    variable = ctx.lookup_resource(0, Var)
    initialized(variable, ctx, 0)
    value = variable.read()
    ctx.require(value is not None and value.ndim >= 1, "the variable is a scalar, which has no rows to gather")
    assert value is not None
    return value


@kernel("ResourceStridedSliceAssign")
def strided_slice_assign(ctx: OpKernelContext) -> None:
    """Assign a value to a slice of the variable."""
    variable = ctx.lookup_resource(0, Var)
    with variable.lock:
        old = initialized(variable, ctx, 0)
        assign_slice(ctx, variable, old.shape)
