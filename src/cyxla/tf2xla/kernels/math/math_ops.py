"""Matrix products, casts, ranges, counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.ranges import stepped_range
from cyxla.core.framework.types import COMPLEX, FLOATING, INDEX, DataType
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, ShapeError
from cyxla.tf2xla.lib import philox
from cyxla.tf2xla.lib.dynamic_sizes import set_dynamic_size
from cyxla.tf2xla.lib.linalg import transpose_matrices
from cyxla.tf2xla.lib.random_operands import generator_of_key
from cyxla.tf2xla.lib.size_bounds import Range
from cyxla.tf2xla.lib.size_checks import SizePair
from cyxla.tf2xla.lib.typed_values import cast, full
from cyxla.tf2xla.types import data_type, element_type
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, checked, lowering, xla_kernel
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import (
    broadcast_to,
    iota,
    is_complex,
    is_narrow,
    rank_of,
    reduced,
    scalar,
    select,
    sizes_of,
    sum_of,
    widened,
    zeros_like,
)

Array = np.ndarray[Any, Any]


@xla_kernel("AccumulateNV2")
@xla_kernel("AddN", variant=True)
def _add_n(ctx: XlaOpKernelContext) -> Any:
    """Add the operands in order; tensor lists by their buffers."""
    if ctx.input_type(0) is DataType.DT_VARIANT:
        lists = [ctx.input_tensor_list(i) for i in range(ctx.num_inputs)]
        total = lists[0].buffer
        for other in lists[1:]:
            total = total + other.buffer  # type: ignore[operator]
        return replace(lists[0], buffer=total)
    inputs = ctx.input_list("inputs")
    for x in inputs[1:]:
        if sizes_of(x) != sizes_of(inputs[0]):
            raise ShapeError(f"operands {list(sizes_of(inputs[0]))} and {list(sizes_of(x))} must have one shape")
    result = widened(inputs[0])
    for x in inputs[1:]:
        result = result + widened(x)
    return xla.convert(result, inputs[0].shape.dtype) if is_narrow(inputs[0]) else result


@lowering("L2Loss")
def _l2_loss(x: XlaOp) -> XlaOp:
    wide = widened(x)
    half = sum_of(wide * wide, range(rank_of(x))) / scalar(wide, 2)
    return xla.convert(half, x.shape.dtype) if is_narrow(x) else half


@lowering("ClipByValue")
def _clip(x: XlaOp, low: XlaOp, high: XlaOp) -> XlaOp:
    for bound in (low, high):
        if rank_of(bound) and sizes_of(bound) != sizes_of(x):
            raise ShapeError(f"a bound of {list(sizes_of(bound))} for an array of {list(sizes_of(x))}")
    return xla.maximum(xla.minimum(x, broadcast_to(high, sizes_of(x))), broadcast_to(low, sizes_of(x)))


@lowering("Cross")
def _cross(a: XlaOp, b: XlaOp) -> XlaOp:
    if sizes_of(a) != sizes_of(b) or not rank_of(a):
        raise ShapeError(f"cross products need vectors of one shape: {list(sizes_of(a))} and {list(sizes_of(b))}")
    if sizes_of(a)[-1] != 3:
        raise FailedPreconditionError(f"cross products need a last dimension of 3; the shape is {list(sizes_of(a))}")
    last = rank_of(a) - 1

    def part(x: XlaOp, k: int) -> XlaOp:
        return xla.slice_in_dim(x, k % 3, k % 3 + 1, 1, last)

    parts = [part(a, k + 1) * part(b, k + 2) - part(a, k + 2) * part(b, k + 1) for k in range(3)]
    return xla.concatenate(parts, last)


# --------------------------------------------------------------------------------------------------------- products


def batched_product(x: XlaOp, y: XlaOp) -> XlaOp:
    """Multiply matrices of broadcasting batches."""
    if sizes_of(x)[-1] != sizes_of(y)[-2]:
        raise ShapeError(f"the inner sizes of {list(sizes_of(x))} and {list(sizes_of(y))} differ")
    try:
        batch = np.broadcast_shapes(sizes_of(x)[:-2], sizes_of(y)[:-2])
    except ValueError:
        raise ShapeError(f"the batches of {list(sizes_of(x))} and {list(sizes_of(y))} do not fit") from None
    x, y = (broadcast_to(v, (*batch, *sizes_of(v)[-2:])) for v in (x, y))
    n = len(batch)
    wide_x, wide_y = widened(x), widened(y)
    batches = tuple(range(n))
    result = xla.dot_general(
        wide_x,
        wide_y,
        lhs_contracting_dims=(n + 1,),
        rhs_contracting_dims=(n,),
        lhs_batch_dims=batches,
        rhs_batch_dims=batches,
    )
    return xla.convert(result, x.shape.dtype) if is_narrow(x) else result


@lowering("MatMul", attrs=("transpose_a", "transpose_b"), types={"T": FLOATING + COMPLEX + INDEX})
def _matmul(a: XlaOp, b: XlaOp, *, transpose_a: bool, transpose_b: bool) -> XlaOp:
    for name, x in (("a", a), ("b", b)):
        if rank_of(x) != 2:
            raise ShapeError(f"{name} must be a matrix; its shape is {list(sizes_of(x))}")
    return batched_product(transpose_matrices(a) if transpose_a else a, transpose_matrices(b) if transpose_b else b)


@lowering("SparseMatMul", attrs=("transpose_a", "transpose_b"))
def _sparse_matmul(a: XlaOp, b: XlaOp, **attrs: Any) -> XlaOp:
    return _matmul(xla.convert(a, ElementType.F32), xla.convert(b, ElementType.F32), **attrs)


def _batch_matmul(broadcast: bool) -> Callable[..., XlaOp]:
    def multiply(x: XlaOp, y: XlaOp, *, adj_x: bool, adj_y: bool, Tout: DataType | None = None) -> XlaOp:
        for name, v in (("x", x), ("y", y)):
            if rank_of(v) < 2:
                raise ShapeError(f"{name} must hold matrices; its shape is {list(sizes_of(v))}")
        if not broadcast and sizes_of(x)[:-2] != sizes_of(y)[:-2]:
            raise ShapeError(f"the batches of {list(sizes_of(x))} and {list(sizes_of(y))} differ")
        if Tout is not None:
            x, y = cast(x, Tout), cast(y, Tout)
        return batched_product(transpose_matrices(x, True) if adj_x else x, transpose_matrices(y, True) if adj_y else y)

    return multiply


lowering("BatchMatMul", _batch_matmul(False), attrs=("adj_x", "adj_y"))
lowering("BatchMatMulV2", _batch_matmul(True), attrs=("adj_x", "adj_y"))
lowering("BatchMatMulV3", _batch_matmul(True), attrs=("adj_x", "adj_y", "Tout"))


# ------------------------------------------------------------------------------------------------------------ casts


@lowering("Cast", attrs=("DstT", "Truncate"))
def _cast(x: XlaOp, *, DstT: DataType, Truncate: bool) -> XlaOp:
    target = element_type(DstT)
    if x.shape.dtype is target:
        return x
    if target is ElementType.PRED:
        return xla.ne(x, zeros_like(x))
    if is_complex(x) and not target.is_complex:
        x = xla.real(x)
    if Truncate and DstT.text in ("bfloat16", "half"):
        return _truncate_float(x, target)
    if target is ElementType.BF16 and x.shape.dtype is ElementType.F64:
        x = xla.convert(x, ElementType.F32)
    return xla.convert(x, target)


def _truncate_float(x: XlaOp, target: ElementType) -> XlaOp:
    """Round to a narrower float towards zero."""
    result = xla.convert(x, target)
    wide = xla.convert(result, x.shape.dtype)
    bits = xla.bitcast_convert(result, ElementType.U16)
    too_large = xla.gt(xla.abs_(wide), xla.abs_(x))
    return xla.bitcast_convert(select(too_large, bits - scalar(bits, 1), bits), target)


@lowering("Bucketize", attrs=("boundaries",))
def _bucketize(x: XlaOp, *, boundaries: Sequence[float]) -> XlaOp:
    """Count the boundaries not above each number."""
    edges = np.asarray(boundaries, np.float32)
    if (edges[1:] < edges[:-1]).any():
        raise InvalidArgumentError(f"boundaries must be sorted: {list(boundaries)}")
    wide = xla.convert(x, ElementType.F64)
    table = xla.constant(x.builder, edges.astype(np.float64))
    sizes = (*sizes_of(x), len(edges))
    below = xla.lt(xla.broadcast_in_dim(wide, sizes, range(rank_of(x))), broadcast_to(table, sizes))
    return sum_of(xla.convert(xla.not_(below), ElementType.S32), [rank_of(x)])


@xla_kernel("Range", const=("start", "limit", "delta"))
def _range(ctx: XlaOpKernelContext) -> Any:
    """Output a constant, or numbers up to a bound if the limits are computed of sizes."""
    names = ("start", "limit", "delta")
    operands = [ctx.input_expression(name) for name in names]
    ranges = [found for x in operands if (found := ctx.xla.range_of(x)) is not None]
    is_known = all(ctx.xla.constant_value(x) is not None for x in operands)
    if is_known or len(ranges) < len(names) or ranges[2][0] != ranges[2][1]:
        ctx.set_constant_output(0, stepped_range(*(ctx.constant_input(name) for name in names)))
        return None
    return _range_at_run_time(ctx, [x.as_xla_op(ctx.builder) for x in operands], ranges)


def _range_at_run_time(ctx: XlaOpKernelContext, operands: Sequence[XlaOp], ranges: Sequence[Range]) -> XlaOp:
    """Emit the numbers of the longest range, and set its size."""
    (start_low, start_high), (limit_low, limit_high), (step, _) = ranges
    if any(np.ndim(low) for low, _ in ranges) or not step:
        stepped_range(*(low for low, _ in ranges))  # raises
    start, limit, delta = operands
    longest = limit_high - start_low if step > 0 else start_high - limit_low
    bound = max(int(-(-longest // abs(step))), 0)
    distance = xla.convert(limit - start if step > 0 else start - limit, ElementType.S64)
    count = (distance + scalar(distance, abs(int(step)) - 1)) / scalar(distance, abs(int(step)))
    zero = scalar(distance, 0)
    first, last = (xla.convert(n, ElementType.S32) for n in (start, limit))
    reason = "the delta of a range has the wrong sign"
    check = SizePair(first, last, InvalidArgumentError, reason, xla.ge(distance, zero))
    numbers = iota(start.builder, start.shape.dtype, bound)
    values = broadcast_to(start, (bound,)) + numbers * broadcast_to(delta, (bound,))
    return checked(ctx, set_dynamic_size(values, xla.convert(xla.maximum(count, zero), ElementType.S32)), [check])


# ----------------------------------------------------------------------------------------------------------- counts


def _count(values: XlaOp, size: int, weights: XlaOp, dtype: DataType, binary: bool) -> XlaOp:
    """Compare each number with all numbers below `size`, and sum over [rows, count, size]."""
    rows, count = sizes_of(values)
    numbers = iota(values.builder, values.shape.dtype, size)
    sizes = (rows, count, size)
    hit = xla.eq(xla.broadcast_in_dim(values, sizes, (0, 1)), xla.broadcast_in_dim(numbers, sizes, (2,)))
    if binary:
        is_hit = reduced(hit, "or", scalar(hit, False), [1])
        return xla.convert(is_hit, element_type(dtype))
    updates = full(values.builder, 1, dtype, (rows, count)) if not _has_elements(weights) else weights
    updates = xla.broadcast_in_dim(xla.reshape(updates, (rows, count)), sizes, (0, 1))
    return sum_of(select(hit, updates, zeros_like(updates)), [1])


def _has_elements(x: XlaOp) -> bool:
    return 0 not in sizes_of(x)


@lowering("Bincount", const=("size",))
def _bincount(values: XlaOp, size: Array, weights: XlaOp) -> XlaOp:
    flat = xla.reshape(values, (1, int(np.prod(sizes_of(values), dtype=np.int64))))

    return xla.reshape(_count(flat, int(size), weights, data_type(weights.shape.dtype), False), (int(size),))


@lowering("DenseBincount", attrs=("binary_output", "T"), const=("size",))
def _dense_bincount(values: XlaOp, size: Array, weights: XlaOp, *, binary_output: bool, T: DataType) -> XlaOp:
    if rank_of(values) > 2:
        raise ShapeError(f"the input must be a vector or a matrix; its shape is {list(sizes_of(values))}")
    rows = xla.reshape(values, (1, sizes_of(values)[0])) if rank_of(values) == 1 else values
    result = _count(rows, int(size), weights, T, binary_output)
    return xla.reshape(result, (int(size),)) if rank_of(values) == 1 else result


# -------------------------------------------------------------------------------- composition, stochastic rounding

# fmt: off
_COMPOSABLE = frozenset((
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Elu", "Exp", "Expm1", "Floor",
    "Inv", "Log", "Log1p", "Neg", "Reciprocal", "Relu", "Relu6", "Rint", "Round", "Rsqrt", "Selu", "Sigmoid", "Sin",
    "Sinh", "Sqrt", "Square", "Tan", "Tanh",
))
# fmt: on


@lowering("_UnaryOpsComposition", attrs=("op_names",), types={"T": (FLOATING[0], *FLOATING[2:])})
def _composition(x: XlaOp, *, op_names: Sequence[bytes | str]) -> XlaOp:
    """Apply the lowerings of the listed ops in sequence."""
    for names in op_names:
        name = names.decode() if isinstance(names, bytes) else names
        if name not in _COMPOSABLE:
            raise InvalidArgumentError(f"{name!r} is not a unary op that can be part of a composition")
        factory: Any = XlaOpRegistry.global_().registrations(name)[0].factory
        x = factory.keywords["function"](x)
    return x


@lowering("StochasticCastToInt", attrs=("Tout",), const=("alg",), types={"Tin": FLOATING})
def _stochastic_cast(x: XlaOp, key: XlaOp, counter: XlaOp, alg: Array, *, Tout: DataType) -> XlaOp:
    """Emit HLO's stochastic-convert with one random word per number."""
    wide = widened(x)
    words = DataType.DT_UINT64 if wide.shape.dtype.bits == 64 else DataType.DT_UINT32
    return xla.stochastic_convert(
        wide, philox.uniform(generator_of_key(key, counter, alg), sizes_of(x), words), element_type(Tout)
    )
