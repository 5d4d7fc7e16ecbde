"""Ops that correspond to single HLO instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import FLOATING, DataType, as_data_type
from cyxla.errors import InvalidArgumentError, NotFoundError, ShapeError, UnimplementedError
from cyxla.tf2xla.hlo_attributes import (
    computation_of,
    computation_of_two,
    fields_of,
    int_vectors,
    message,
    padding_pairs,
    precision,
    preferred_type,
)
from cyxla.tf2xla.lib import linalg
from cyxla.tf2xla.lib.bounded_shapes import mask_padding, with_sizes
from cyxla.tf2xla.lib.dynamic_sizes import set_dynamic_size, split_dynamic
from cyxla.tf2xla.lib.einsum import contract
from cyxla.tf2xla.lib.tiles import concatenate_tiles, split_tiles
from cyxla.tf2xla.types import element_type
from cyxla.tf2xla.xla_expression import ExpressionKind
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, lowering, xla_kernel
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.attributes import ConvDims
from cyxla.xla.hlo.builder import XlaComputation, XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import iota_along, is_complex, rank_of, scalar, sizes_of
from cyxla.xla.stablehlo import read_stablehlo

Array = np.ndarray[Any, Any]

_BITS = tuple(map(as_data_type, ("uint8", "uint32", "uint64")))

# ------------------------------------------------------------------------------------------ products and convolutions

_DOT = ("lhs_contracting_dimensions", "rhs_contracting_dimensions", "lhs_batch_dimensions", "rhs_batch_dimensions")


@xla_kernel(("XlaDot", "XlaDotV2"))
def _dot(ctx: XlaOpKernelContext) -> Any:
    """Emit a dot."""
    numbers = fields_of(message(ctx, "dimension_numbers", "DotDimensionNumbers"), *_DOT)
    return xla.dot_general(
        ctx.input("lhs"),
        ctx.input("rhs"),
        **{name.replace("dimensions", "dims"): value for name, value in numbers.items()},
        operand_precision=precision(ctx),
        preferred_element_type=preferred_type(ctx),
    )


_CONV = (
    "input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions", "kernel_input_feature_dimension",
    "kernel_output_feature_dimension", "kernel_spatial_dimensions", "output_batch_dimension",
    "output_feature_dimension", "output_spatial_dimensions",
)  # fmt: skip
_CONV_CONSTANTS = ("window_strides", "padding", "lhs_dilation", "rhs_dilation", "feature_group_count")


@xla_kernel(("XlaConv", "XlaConvV2"), const=_CONV_CONSTANTS)
def _conv(ctx: XlaOpKernelContext) -> Any:
    """Emit a convolution."""
    numbers = fields_of(message(ctx, "dimension_numbers", "ConvolutionDimensionNumbers"), *_CONV)
    strides, base_dilations, window_dilations = int_vectors(ctx, "window_strides", "lhs_dilation", "rhs_dilation")
    return xla.conv_general_dilated(
        ctx.input("lhs"),
        ctx.input("rhs"),
        strides,
        padding_pairs(ctx, "padding"),
        base_dilations,
        window_dilations,
        ConvDims(*numbers.values()),
        ctx.constant_input_as_int_scalar("feature_group_count"),
        ctx.kernel.attrs.get("batch_group_count", 1),
        operand_precision=precision(ctx),
        preferred_element_type=preferred_type(ctx),
    )


@lowering("XlaEinsum", attrs=("equation",))
def _einsum(a: XlaOp, b: XlaOp, *, equation: str) -> XlaOp:
    """Emit a dot and a transpose."""
    return contract(equation, [a, b])


# ---------------------------------------------------------------------------------------------------------- reductions


@xla_kernel("XlaReduce")
def _reduce(ctx: XlaOpKernelContext) -> Any:
    """Emit a reduce."""
    reducer = computation_of_two(ctx, "reducer", ctx.attr("T"))
    return xla.reduce(ctx.input("input"), ctx.input("init_value"), reducer, ctx.attr("dimensions_to_reduce"))


@xla_kernel(("XlaVariadicReduce", "XlaVariadicReduceV2"))
def _variadic_reduce(ctx: XlaOpKernelContext) -> Any:
    """Emit one reduce of all operands."""
    count = ctx.num_inputs // 2
    operands, inits = ([ctx.input(i) for i in part] for part in (range(count), range(count, 2 * count)))
    types = [ctx.input_type(i) for i in range(count)]
    reducer = computation_of(ctx, "reducer", (*types, *types), single=count == 1)
    result = xla.reduce(operands, inits, reducer, ctx.attr("dimensions_to_reduce"))
    return result if count == 1 else [xla.get_tuple_element(result, i) for i in range(count)]


_WINDOW = ("window_dimensions", "window_strides")
_DILATIONS = ("base_dilations", "window_dilations")


@xla_kernel("XlaReduceWindow", const=(*_WINDOW, *_DILATIONS, "padding"))
def _reduce_window(ctx: XlaOpKernelContext) -> Any:
    """Emit a reduce-window."""
    sizes, strides, base_dilations, window_dilations = int_vectors(ctx, *_WINDOW, *_DILATIONS)
    reducer = computation_of_two(ctx, "computation", ctx.attr("T"))
    padding = padding_pairs(ctx, "padding")
    return xla.reduce_window(
        ctx.input("input"), ctx.input("init_value"), reducer, sizes, strides, padding, base_dilations, window_dilations
    )


@xla_kernel("XlaSelectAndScatter", const=(*_WINDOW, "padding"))
def _select_and_scatter(ctx: XlaOpKernelContext) -> Any:
    """Emit a select-and-scatter."""
    dtype: DataType = ctx.attr("T")
    select, scatter = (computation_of_two(ctx, name, dtype) for name in ("select", "scatter"))
    sizes, strides = int_vectors(ctx, *_WINDOW)
    operand, source, init = (ctx.input(name) for name in ("operand", "source", "init_value"))
    return xla.select_and_scatter(operand, select, sizes, strides, padding_pairs(ctx, "padding"), source, init, scatter)


_REDUCERS = {"Add": "add", "Mul": "multiply", "Min": "minimum", "Max": "maximum", "Mean": "add"}


def _groups(ctx: XlaOpKernelContext) -> tuple[list[list[int]], int]:
    """Return the groups of replicas, and their size."""
    value = ctx.constant_input("group_assignment")
    if value.ndim != 2:
        raise ShapeError(f"group_assignment must have a row for each group; its shape is {list(value.shape)}")
    return value.tolist(), value.shape[1]


def _reduction(ctx: XlaOpKernelContext) -> tuple[XlaComputation, Callable[[XlaOp], XlaOp]]:
    """Return the scalar computation of a reduction over replicas, and a function applied to its result."""
    op: str = ctx.attr("reduce_op")
    dtype = element_type(ctx.attr("T"))
    _, size = _groups(ctx)
    computation = scalar_computation(_REDUCERS[op], dtype)
    return computation, (lambda x: x / scalar(x, size)) if op == "Mean" else (lambda x: x)


@xla_kernel("XlaAllReduce", const=("group_assignment",))
def _all_reduce(ctx: XlaOpKernelContext) -> Any:
    """Emit an all-reduce."""
    computation, finish = _reduction(ctx)
    return finish(xla.all_reduce(ctx.input("input"), computation, _groups(ctx)[0]))


@xla_kernel("CollectiveReduceV2", const=("group_size", "group_key"))
def _collective_reduce(ctx: XlaOpKernelContext) -> Any:
    """Emit an all-reduce over the first devices, as many as the group has."""
    x, size = ctx.input("input"), ctx.constant_input_as_int_scalar("group_size")
    ctx.require(size > 0, f"group_size must be positive integer but got {size}")
    computation = scalar_computation(_REDUCERS[ctx.attr("merge_op")], x.shape.dtype)
    channel = ctx.constant_input_as_int_scalar("group_key")
    result = xla.all_reduce(x, computation, [list(range(size))], channel if channel > 0 else None)
    return result / scalar(x, size) if ctx.attr("final_op") == "Div" else result


@xla_kernel("CollectiveAssignGroupV2", const=("group_assignment", "device_index", "base_key"))
def _collective_assign_group(ctx: XlaOpKernelContext) -> Any:
    """Emit the size of the groups, and the key of the group that contains a device."""
    groups = ctx.constant_input("group_assignment")
    device, base = (ctx.constant_input_as_int_scalar(name) for name in ("device_index", "base_key"))
    ctx.require(groups.ndim == 2, f"group_assignment must be a matrix; its shape is {list(groups.shape)}")
    rows = np.flatnonzero((groups == device).any(axis=1))
    ctx.require(len(rows), f"device_index {device} is not found in group_assignment {groups.tolist()}")
    return tuple(xla.constant(ctx.builder, n, ElementType.S32) for n in (groups.shape[1], base + int(rows[0])))


@xla_kernel("XlaReduceScatter", const=("group_assignment", "scatter_dimension"))
def _reduce_scatter(ctx: XlaOpKernelContext) -> Any:
    """Emit a reduce-scatter."""
    computation, finish = _reduction(ctx)
    groups, size = _groups(ctx)
    x, axis = ctx.input("input"), ctx.constant_input_as_int_scalar("scatter_dimension")
    ctx.require(0 <= axis < rank_of(x), f"scatter_dimension {axis} is not a dimension of {list(sizes_of(x))}")
    ctx.require(size and sizes_of(x)[axis] % size == 0, f"{sizes_of(x)[axis]} does not divide among {size} replicas")
    sizes = [n // size if d == axis else n for d, n in enumerate(sizes_of(x))]
    return finish(xla.reduce_scatter(x, computation, axis, groups, shape=x.shape.with_dims(sizes)))


@xla_kernel("XlaReplicaId")
def _replica_id(ctx: XlaOpKernelContext) -> Any:
    """Emit a replica-id."""
    return xla.convert(xla.replica_id(ctx.builder), ElementType.S32)


# ------------------------------------------------------------------------------------------------- gather and scatter


@xla_kernel("XlaGather", const=("slice_sizes",))
def _gather(ctx: XlaOpKernelContext) -> Any:
    """Emit a gather."""
    numbers = message(ctx, "dimension_numbers", "GatherDimensionNumbers")
    names = [field.name for field in numbers.DESCRIPTOR.fields]
    return xla.gather(
        ctx.input("operand"),
        ctx.input("start_indices"),
        **fields_of(numbers, *names),
        slice_sizes=ctx.constant_input_as_int_vector("slice_sizes"),
        indices_are_sorted=ctx.attr("indices_are_sorted"),
    )


@xla_kernel("XlaScatter")
def _scatter(ctx: XlaOpKernelContext) -> Any:
    """Emit a scatter."""
    numbers = message(ctx, "dimension_numbers", "ScatterDimensionNumbers")
    names = [field.name for field in numbers.DESCRIPTOR.fields]
    return xla.scatter(
        ctx.input("operand"),
        ctx.input("scatter_indices"),
        ctx.input("updates"),
        computation_of_two(ctx, "update_computation", ctx.attr("T")),
        **fields_of(numbers, *names),
        indices_are_sorted=ctx.attr("indices_are_sorted"),
    )


def _starts(indices: XlaOp, rank: int) -> list[XlaOp]:
    """Return one scalar per dimension.

    Raises
    ------
    ShapeError
        The number of indices differs from the rank.
    """
    if sizes_of(indices) != (rank,):
        raise ShapeError(f"{rank} indices are required; there are {list(sizes_of(indices))}")
    return [xla.reshape(xla.slice_in_dim(indices, i, i + 1), ()) for i in range(rank)]


@lowering("XlaDynamicSlice", const=("size_indices",))
def _dynamic_slice(x: XlaOp, start_indices: XlaOp, size_indices: Array) -> XlaOp:
    """Emit a dynamic-slice."""
    if size_indices.shape != (rank_of(x),):
        raise ShapeError(f"{rank_of(x)} sizes are required; there are {list(size_indices.shape)}")
    return xla.dynamic_slice(x, _starts(start_indices, rank_of(x)), [int(n) for n in size_indices])


@lowering("XlaDynamicUpdateSlice")
def _dynamic_update_slice(x: XlaOp, update: XlaOp, indices: XlaOp) -> XlaOp:
    """Emit a dynamic-update-slice."""
    return xla.dynamic_update_slice(x, update, _starts(indices, rank_of(x)))


@lowering("XlaPad", const=("padding_low", "padding_high", "padding_interior"))
def _pad(x: XlaOp, value: XlaOp, low: Array, high: Array, interior: Array) -> XlaOp:
    """Emit a pad."""
    for amounts in (low, high, interior):
        if amounts.shape != (rank_of(x),):
            raise ShapeError(f"{rank_of(x)} paddings are required; there are {list(amounts.shape)}")
    return xla.pad(x, value, [tuple(map(int, row)) for row in zip(low, high, interior, strict=True)])


# ------------------------------------------------------------------------------------------------------------ sorting


@lowering("XlaSort")
def _sort(x: XlaOp) -> XlaOp:
    """Emit a sort along the last dimension."""
    return xla.sort(x)


@lowering("XlaKeyValueSort")
def _key_value_sort(keys: XlaOp, values: XlaOp) -> list[XlaOp]:
    """Emit one sort of both operands."""
    result = xla.sort([keys, values])
    return [xla.get_tuple_element(result, i) for i in range(2)]


@xla_kernel("XlaVariadicSort", const=("dimension",))
def _variadic_sort(ctx: XlaOpKernelContext) -> Any:
    """Emit a sort by a comparator, which takes two elements of each operand."""
    operands = ctx.input_list("inputs")
    types = [t for i in range(len(operands)) for t in [ctx.input_type(i)] * 2]
    less = computation_of(ctx, "comparator", types)
    axis, rank = ctx.constant_input_as_int_scalar("dimension"), rank_of(operands[0])
    ctx.require(-rank <= axis < rank, f"dimension {axis} is not a dimension of {list(sizes_of(operands[0]))}")
    result = xla.sort(operands, less, axis, ctx.attr("is_stable"))
    return result if len(operands) == 1 else [xla.get_tuple_element(result, i) for i in range(len(operands))]


# ----------------------------------------------------------------------------------------------------- linear algebra


@lowering("XlaSelfAdjointEig", attrs=("lower",))
def _eigh(a: XlaOp, *, lower: bool) -> list[XlaOp]:
    """Call LAPACK as for SelfAdjointEigV2, on the requested triangle."""
    return linalg.eigh(a if lower else _adjoint(a), compute_v=True)


def _adjoint(a: XlaOp) -> XlaOp:
    rank = rank_of(a)
    transposed = xla.transpose(a, [*range(rank - 2), rank - 1, rank - 2]) if rank > 1 else a
    return xla.complex_(xla.real(transposed), xla.negate(xla.imag(transposed))) if is_complex(a) else transposed


@lowering("XlaSvd", types={"T": FLOATING})
def _svd(a: XlaOp) -> list[XlaOp]:
    """Call LAPACK as for Svd, with full vectors."""
    return linalg.svd(a, compute_uv=True, full_matrices=True)


# ----------------------------------------------------------------------------------------------- control flow, calls


@xla_kernel("XlaCustomCall")
def _custom_call(ctx: XlaOpKernelContext) -> Any:
    """Emit a custom-call."""
    shape = Shape.array(element_type(ctx.attr("dtype")), tuple(ctx.attr("shape").as_list()))
    target, config = ctx.attr("target_name"), ctx.attr("backend_config")
    return xla.custom_call(ctx.builder, target, ctx.input_list("args"), shape, config)


@xla_kernel("XlaCustomCallV2")
def _custom_call_v2(ctx: XlaOpKernelContext) -> Any:
    """Emit a custom-call that returns a tuple."""
    types, shapes = ctx.attr("result_dtypes"), ctx.attr("result_shapes")
    results = [Shape.array(element_type(t), tuple(s.as_list())) for t, s in zip(types, shapes, strict=True)]
    target, config = ctx.attr("call_target_name"), ctx.attr("backend_config")
    effect = ctx.attr("has_side_effect")
    shape = results[0] if len(results) == 1 else Shape.tuple(results)
    result = xla.custom_call(ctx.builder, target, ctx.input_list("operands"), shape, config, has_side_effect=effect)
    return result if len(results) == 1 else [xla.get_tuple_element(result, i) for i in range(len(results))]


@xla_kernel("XlaCallModule")
def _call_module(ctx: XlaOpKernelContext) -> Any:
    """Emit a call of a module in StableHLO text, whose dynamic sizes are refined by the operands."""
    text = ctx.attr("module")
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    bytecode = text.encode("utf-8", "surrogateescape").startswith(b"ML\xefR")
    ctx.require(not bytecode, "a module in MLIR bytecode is not read: give its text", UnimplementedError)
    operands = [*_platform_index(ctx), *ctx.input_list("args")]
    module = read_stablehlo(text, [x.shape for x in operands])
    result = xla.call(ctx.builder, XlaComputation(module), operands)
    return (
        [xla.get_tuple_element(result, i) for i in range(len(result.shape.elements))]
        if result.shape.is_tuple
        else [result]
    )


def _platform_index(ctx: XlaOpKernelContext) -> list[XlaOp]:
    """Return the platform index, the first operand of a module for several platforms."""
    platforms = [str(p).upper() for p in ctx.attr("platforms")]
    if len(platforms) < 2:
        return []
    ctx.require("CPU" in platforms, f"the module is for {', '.join(platforms)}, not for the CPU", NotFoundError)
    return [xla.constant(ctx.builder, platforms.index("CPU"), ElementType.S32)]


# ----------------------------------------------------------------------------------------------------------- sharding


@xla_kernel(("XlaSharding", "XlaSpmdFullToShardShape"))
def _forward(ctx: XlaOpKernelContext) -> Any:
    """Forward the input: the single device holds the whole tensor."""
    ctx.set_output_expression(0, ctx.input_expression(0))


@xla_kernel("XlaSpmdShardToFullShape")
def _full_shape(ctx: XlaOpKernelContext) -> Any:
    """Forward the input, which must have the full shape."""
    full: TensorShape = ctx.attr("full_shape")
    shape = TensorShape(ctx.input_shape(0))
    ctx.require(
        full.is_compatible_with(shape), f"the only device has {shape}, but the full shape is {full}", ShapeError
    )
    ctx.set_output_expression(0, ctx.input_expression(0))


@lowering("XlaOptimizationBarrier")
def _barrier(inputs: list[XlaOp]) -> list[XlaOp]:
    """Emit an opt-barrier of a tuple."""
    if not inputs:
        return []
    result = xla.opt_barrier(xla.tuple_(inputs[0].builder, inputs))
    return [xla.get_tuple_element(result, i) for i in range(len(inputs))]


@lowering("XlaSplitND", attrs=("num_splits", "paddings"))
def _split_nd(x: XlaOp, *, num_splits: Sequence[int], paddings: Sequence[int]) -> list[XlaOp]:
    """Emit one slice per tile."""
    return split_tiles(x, num_splits, paddings)


@lowering("XlaConcatND", attrs=("num_concats", "paddings"))
def _concat_nd(inputs: list[XlaOp], *, num_concats: Sequence[int], paddings: Sequence[int]) -> XlaOp:
    """Concatenate tiles along all dimensions."""
    return concatenate_tiles(inputs, num_concats, paddings)


# ------------------------------------------------------------------- broadcast, precision, random bits, dynamic sizes


@lowering("XlaBroadcastHelper", const=("broadcast_dims",))
def _broadcast_helper(lhs: XlaOp, rhs: XlaOp, broadcast_dims: Array) -> list[XlaOp]:
    """Reshape the operand of lower rank, with size 1 for missing dimensions."""
    swap = rank_of(lhs) > rank_of(rhs)
    low, high = (rhs, lhs) if swap else (lhs, rhs)
    dims = [int(d) for d in broadcast_dims.reshape(-1)]
    if not dims and rank_of(low) in (0, rank_of(high)):
        return [lhs, rhs]
    if len(dims) != rank_of(low) or len(set(dims)) != len(dims) or any(not 0 <= d < rank_of(high) for d in dims):
        raise InvalidArgumentError(f"broadcast_dims {dims} do not map {low.shape} to {high.shape}")
    if sorted(dims) != dims:
        raise InvalidArgumentError(f"broadcast_dims must ascend: {dims}")
    sizes = [1] * rank_of(high)
    for d, n in zip(dims, sizes_of(low), strict=True):
        if n not in (1, sizes_of(high)[d]):
            raise ShapeError(f"{low.shape} does not broadcast over {high.shape} along {dims}")
        sizes[d] = n
    reshaped = xla.reshape(low, sizes)
    return [high, reshaped] if swap else [reshaped, high]


@lowering("XlaReducePrecision", attrs=("exponent_bits", "mantissa_bits"))
def _reduce_precision(x: XlaOp, *, exponent_bits: int, mantissa_bits: int) -> XlaOp:
    """Emit a reduce-precision."""
    return xla.reduce_precision(x, exponent_bits, mantissa_bits)


_ALGORITHMS = ("rng_default", "rng_three_fry", "rng_philox")


@xla_kernel("XlaRngBitGenerator", const=("algorithm", "shape"), types={"dtype": _BITS})
def _bits(ctx: XlaOpKernelContext) -> Any:
    """Emit an rng-bit-generator."""
    number = ctx.constant_input_as_int_scalar("algorithm")
    ctx.require(0 <= number < len(_ALGORITHMS), f"unknown algorithm {number}")
    shape = Shape.array(element_type(ctx.attr("dtype")), ctx.constant_input_as_shape("shape"))
    result = xla.rng_bit_generator(ctx.input("initial_state"), shape, _ALGORITHMS[number])
    return [xla.get_tuple_element(result, i) for i in range(2)]


@xla_kernel("XlaSetBound", const=("bound",))
def _set_bound(ctx: XlaOpKernelContext) -> Any:
    """Forward the input: the bound is a guarantee."""
    ctx.set_output_expression(0, ctx.input_expression("input"))


@xla_kernel("XlaSetDynamicDimensionSize", const=("dim_index",))
def _set_size(ctx: XlaOpKernelContext) -> Any:
    """Emit a set-dimension-size, which clamps the size to 0 .. bound; what a size that grows again exposes is 0."""
    x, axis = ctx.dynamic_input("input"), ctx.constant_input_as_int_scalar("dim_index")
    ctx.require(0 <= axis < rank_of(x), f"dim_index {axis} is not a dimension of {list(sizes_of(x))}")
    padded, sizes = split_dynamic(x)
    if axis in sizes:
        padded = mask_padding(padded, {axis: sizes.pop(axis)}, scalar(padded, 0))
    size = ctx.input("size")
    sizes[axis] = xla.clamp(scalar(size, 0), size, scalar(size, sizes_of(padded)[axis]))
    return with_sizes(padded, sizes)


@xla_kernel("XlaRemoveDynamicDimensionSize", const=("dim_index",))
def _remove_size(ctx: XlaOpKernelContext) -> Any:
    """Return the padded array for a dimension."""
    axis = ctx.constant_input_as_int_scalar("dim_index")
    padded, sizes = split_dynamic(ctx.input_expression("input").as_xla_op(ctx.builder))
    ctx.require(0 <= axis < rank_of(padded), f"dim_index {axis} is not a dimension of {list(sizes_of(padded))}")
    for dimension, size in sizes.items():
        padded = padded if dimension == axis else set_dynamic_size(padded, size, dimension)
    return padded


# ----------------------------------------------------------------- variable handles, send and receive, dequantisation


@xla_kernel("_XlaAotOnlyVarHandleOp")
def _variable_handle(ctx: XlaOpKernelContext) -> Any:
    """Output the program's argument that is the variable of this name."""
    name = ctx.attr("shared_name") or ctx.kernel.name
    for arg in ctx.xla.args:
        if arg.kind is ExpressionKind.RESOURCE and arg.value.name == name:
            ctx.set_output_expression(0, arg)
            return
    raise NotFoundError(f"no argument of the program is the variable {name!r}")


def _channel(ctx: XlaOpKernelContext) -> int:
    """Return the channel number of a name, which is the same in every program."""
    return crc32(str(ctx.attr("tensor_name")).encode("utf-8", "surrogateescape")) + 1


@xla_kernel("XlaSend")
def _send(ctx: XlaOpKernelContext) -> Any:
    """Emit a send and a send-done."""
    token = xla.after_all(ctx.builder)
    channel = _channel(ctx)
    xla.send_done(xla.send(ctx.input("tensor"), token, channel), channel)


@xla_kernel("XlaRecv")
def _recv(ctx: XlaOpKernelContext) -> Any:
    """Emit a recv and a recv-done."""
    shape = Shape.array(element_type(ctx.attr("dtype")), tuple(ctx.attr("shape").as_list()))
    channel = _channel(ctx)
    done = xla.recv_done(xla.recv(xla.after_all(ctx.builder), shape, channel), channel)
    return xla.get_tuple_element(done, 0)


_PACKED = 4  # bytes in a word


@lowering("XlaDequantize", attrs=("min_range", "max_range", "mode", "transpose_output"))
def _dequantize(x: XlaOp, *, min_range: float, max_range: float, mode: str, transpose_output: bool) -> XlaOp:
    """Unpack the bytes of words, highest first, by shifts, and scale them to a range in bf16.

    They replace the last dimension; if transposed, all dimensions are reversed as well.
    """
    if mode != "MIN_COMBINED":
        raise InvalidArgumentError(
            f"XlaDequantize does not support the mode {mode!r}", hint="MIN_COMBINED is the one there is"
        )
    if not rank_of(x):
        raise ShapeError("XlaDequantize needs at least one dimension; its input is a scalar")
    wide = (*sizes_of(x), _PACKED)
    byte_indices = iota_along(x.builder, ElementType.U32, wide, len(wide) - 1)
    shifts = (xla.broadcast(scalar(byte_indices, _PACKED - 1), wide) - byte_indices) * xla.broadcast(
        scalar(byte_indices, 8), wide
    )
    words = xla.broadcast_in_dim(x, wide, range(rank_of(x)))
    bytes_ = xla.shift_right_logical(words, shifts) & xla.broadcast(scalar(x, 255), wide)
    narrow = xla.convert(bytes_, ElementType.BF16)
    factor, least = (xla.broadcast(scalar(narrow, v), wide) for v in ((max_range - min_range) / 255, min_range))
    result = narrow * factor + least
    flat = xla.reshape(result, (*sizes_of(x)[:-1], sizes_of(x)[-1] * _PACKED))
    return xla.transpose(flat, list(reversed(range(rank_of(x))))) if transpose_output else flat
