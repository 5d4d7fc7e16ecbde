"""Checkpoints of version 1, and constants in files."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.checkpoint.slice_file import SliceFileReader, write_slice_file
from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.kernels.lib.checkpoint_operands import saved_piece, scalar_text, text_of
from cyxla.core.kernels.lib.slice_checkpoint import restore_tensor
from cyxla.errors import InternalError, InvalidArgumentError, UnimplementedError

Array = np.ndarray[Any, Any]


@kernel(("Save", "SaveSlices"))
def save(ctx: OpKernelContext) -> None:
    """Write tensors, or slices of them, to one file."""
    path = _one_text(ctx, 0, "filename")
    names, arrays = [text_of(name) for name in ctx.input("tensor_names").flat], ctx.input_list("data")
    slices, fixed = [""] * len(names), 2
    if ctx.op_kernel.type_string == "SaveSlices":
        slices, fixed = [text_of(text) for text in ctx.input("shapes_and_slices").flat], 3
        ctx.require(
            len(slices) == len(names),
            f"Expected {len(names)} elements for the tensor shapes and slices but got {len(slices)}",
        )
    ctx.require(
        len(arrays) == len(names),
        f"Expected totally {len(names) + fixed} inputs as input #1 (which is a string tensor of saved names) contains "
        f"{len(names)} names, but received {ctx.num_inputs} inputs",
    )
    pieces = [saved_piece(*piece) for piece in zip(names, slices, arrays, ctx.attr("T"), strict=True)]
    write_slice_file(path, pieces, ctx.env)


@kernel(("Restore", "RestoreSlice"))
def restore(ctx: OpKernelContext) -> None:
    """Read a tensor, or a slice of it."""
    pattern, name = _one_text(ctx, 0, "file_pattern"), _one_text(ctx, 1, "tensor_name")
    text = scalar_text(ctx, "shape_and_slice") if ctx.num_inputs > 2 else ""
    reader = SliceFileReader(pattern, ctx.env)
    ctx.set_output(0, restore_tensor(reader, name, text, ctx.attr("dt")))


def _one_text(ctx: OpKernelContext, index: int, name: str) -> str:
    size = ctx.input(index).size
    ctx.require(size == 1, f"Input {index} ({name}) must be a string scalar; got a tensor of {size} elements")
    return scalar_text(ctx, name)


@kernel("ImmutableConst")
def immutable_const(ctx: OpKernelContext) -> None:
    """Map the elements of a constant from a file into memory."""
    name, dtype, shape = ctx.attr("memory_region_name"), ctx.attr("dtype"), ctx.attr("shape")
    if dtype == DataType.DT_STRING:
        raise UnimplementedError("Sorry, DT_STRING is not currently supported for ImmutableConstOp.")
    ctx.require(not dtype.numpy.hasobject and shape.is_fully_defined, f"no file can hold a constant of {dtype}{shape}")
    ctx.set_output(0, _as_constant(ctx.env.new_read_only_memory_region(name), dtype, shape))


def _as_constant(region: Array, dtype: DataType, shape: TensorShape) -> Array:
    needed = (shape.num_elements or 0) * dtype.numpy.itemsize
    if needed > len(region):
        raise InternalError(f"Readonly memory region has wrong length ({len(region)}) when allocating {needed}")
    try:
        values = np.asarray(region)[:needed].view(dtype.numpy).reshape(shape.as_list())
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"the file does not hold a constant of {dtype}{shape}: {error}") from None
    values.flags.writeable = False
    return values
