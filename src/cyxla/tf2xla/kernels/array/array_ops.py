"""Constants, identities, shapes, selection, unique values, diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.diagonals import Band, band_of, band_to_fill
from cyxla.core.framework.geometry.reshaping import broadcast_args, broadcast_gradient_args, reshaped, squeezed_axes
from cyxla.core.framework.geometry.shape_operands import axis_of, scalar_of
from cyxla.core.framework.geometry.shape_operands import sizes_of as read_sizes
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import NUMBER, DataType, as_data_type
from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.tf2xla.lib.bounded_shapes import runtime_sizes, with_sizes
from cyxla.tf2xla.lib.dynamic_reshapes import broadcast_at_run_time, fitted, reshape_at_run_time
from cyxla.tf2xla.lib.dynamic_sizes import is_dynamic, set_dynamic_size, split_dynamic
from cyxla.tf2xla.lib.size_bounds import Range
from cyxla.tf2xla.lib.size_checks import SizePair
from cyxla.tf2xla.lib.typed_values import cast, full
from cyxla.tf2xla.lib.unique import compress_indices, first_equal, first_equal_row, number_groups, rows_at
from cyxla.tf2xla.types import element_type
from cyxla.tf2xla.xla_expression import ExpressionKind
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, checked, lowering, xla_kernel
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import (
    broadcast_to,
    full_like,
    iota,
    iota_along,
    is_complex,
    rank_of,
    reduced,
    scalar,
    select,
    sizes_of,
    sum_of,
    zeros_like,
)

Array = np.ndarray[Any, Any]


def _dtypes(*names: str) -> tuple[DataType, ...]:
    return tuple(map(as_data_type, names))


# --------------------------------------------------------------------------------------------- constants, identities


@xla_kernel("Const")
def _const(ctx: XlaOpKernelContext) -> Any:
    """Output the constant, which becomes an instruction only if needed."""
    ctx.set_constant_output(0, ctx.attr("value").array)


_IDENTITIES = ("Snapshot", "PreventGradient", "PlaceholderWithDefault", "GuaranteeConst", "Copy", "DeepCopy")


@xla_kernel(_IDENTITIES)
@xla_kernel("StopGradient", variant=True)
@xla_kernel(("Identity", "IdentityN"), resource=True, variant=True)
def _identity(ctx: XlaOpKernelContext) -> Any:
    """Forward the inputs."""
    for i in range(ctx.num_inputs):
        ctx.set_output_expression(i, ctx.input_expression(i))


@xla_kernel("EnsureShape")
def _ensure_shape(ctx: XlaOpKernelContext) -> Any:
    """Forward the input; sizes known at run time are compared with those of the shape, and are static behind it."""
    shape, expression = ctx.attr("shape"), ctx.input_expression(0)
    own = _dynamic_sizes(ctx)
    if own is None:
        if not shape.is_compatible_with(TensorShape(expression.shape)):
            raise ShapeError(f"the shape {list(expression.shape)} is not an instance of {shape}")
        ctx.set_output_expression(0, expression)
        return None
    padded, sizes = split_dynamic(expression.value)
    if not shape.is_compatible_with(TensorShape([None if d in sizes else n for d, n in enumerate(sizes_of(padded))])):
        raise ShapeError(f"{expression.value.shape} is not an instance of {shape}")
    checks = []
    for d in sorted(sizes) if shape.dims is not None else ():
        stated = shape.dims[d]
        if stated is not None:
            checks.append(SizePair(own[d], scalar(own[d], stated)))
            del sizes[d]
            padded = fitted(padded, stated, d)
    return checked(ctx, with_sizes(padded, sizes), checks)


@xla_kernel("ZerosLike", variant=True)
def _zeros_like(ctx: XlaOpKernelContext) -> Any:
    if ctx.input_expression(0).kind is ExpressionKind.TENSOR_LIST:
        tensor_list = ctx.input_tensor_list(0)
        return (
            tensor_list
            if tensor_list.buffer is None
            else tensor_list.with_parts([zeros_like(tensor_list.buffer), tensor_list.pushed])
        )
    return full(ctx.builder, 0, ctx.input_type(0), ctx.input_shape(0))


@xla_kernel("OnesLike")
def _ones_like(ctx: XlaOpKernelContext) -> Any:
    return full(ctx.builder, 1, ctx.input_type(0), ctx.input_shape(0))


@lowering("Fill", const=("dims",))
def _fill(dims: Array, value: XlaOp) -> XlaOp:
    if rank_of(value):
        raise ShapeError(f"value must be a scalar; its shape is {list(sizes_of(value))}")
    return xla.broadcast(value, read_sizes(dims, "dims"))


@xla_kernel("Empty", const=("shape",))
def _empty(ctx: XlaOpKernelContext) -> Any:
    return full(ctx.builder, 0, ctx.attr("dtype"), ctx.constant_input_as_shape("shape"))


@lowering("LinSpace", const=("num",))
def _linspace(start: XlaOp, stop: XlaOp, num: Array) -> XlaOp:
    """Emit equal steps, with the exact stop value at the end."""
    for name, x in (("start", start), ("stop", stop)):
        if rank_of(x):
            raise ShapeError(f"{name} must be a scalar; its shape is {list(sizes_of(x))}")
    count = scalar_of(num, "num")
    if count <= 0:
        raise InvalidArgumentError(f"num must be positive; it is {count}")
    if count == 1:
        return xla.reshape(start, (1,))
    step = (stop - start) / scalar(start, count - 1)
    index = xla.convert(iota(start.builder, ElementType.S32, count), start.shape.dtype)
    line = broadcast_to(start, (count,)) + broadcast_to(step, (count,)) * index
    return xla.concatenate([xla.slice_in_dim(line, 0, count - 1), xla.reshape(stop, (1,))], 0)


@lowering("OneHot", attrs=("axis",), const=("depth",))
def _one_hot(indices: XlaOp, depth: Array, on_value: XlaOp, off_value: XlaOp, *, axis: int) -> XlaOp:
    """Compare each index with an iota along a new dimension."""
    size, rank = scalar_of(depth, "depth"), rank_of(indices)
    if size < 0:
        raise InvalidArgumentError(f"depth must not be negative; it is {size}")
    if not -1 <= axis <= rank:
        raise InvalidArgumentError(f"axis {axis} is out of range for a new dimension in rank {rank}")
    position = rank if axis == -1 else axis
    sizes = (*sizes_of(indices)[:position], size, *sizes_of(indices)[position:])
    converted = xla.convert(indices, ElementType.S64)
    repeated = xla.broadcast_in_dim(converted, sizes, [d for d in range(rank + 1) if d != position])
    hit = xla.eq(repeated, iota_along(indices.builder, ElementType.S64, sizes, position))
    return select(hit, on_value, off_value)


# ---------------------------------------------------------------------------------------------------------- shapes


@xla_kernel(("Shape", "ShapeN"), metadata=True)
def _shape(ctx: XlaOpKernelContext) -> Any:
    """Output constants, except for arrays with dynamic sizes."""
    for i in range(ctx.num_inputs):
        if (sizes := _dynamic_sizes(ctx, i)) is None:
            ctx.set_constant_output(i, np.array(ctx.input_shape(i)))
        else:
            vector = xla.concatenate([xla.reshape(n, (1,)) for n in sizes], 0)
            ctx.set_output(i, cast(vector, ctx.attr("out_type")))


def _dynamic_sizes(ctx: XlaOpKernelContext, key: int = 0) -> list[XlaOp] | None:
    """Return the sizes of an input if any of them is dynamic, else None."""
    value = ctx.input_expression(key).value
    if not isinstance(value, XlaOp) or not is_dynamic(value):
        return None
    sizes = runtime_sizes(value)
    for size, bound in zip(sizes, sizes_of(value), strict=True):
        ctx.xla.size_bounds.note(size, bound)
    return sizes


@xla_kernel("Size", metadata=True)
def _size(ctx: XlaOpKernelContext) -> Any:
    if (sizes := _dynamic_sizes(ctx)) is None:
        ctx.set_constant_output(0, np.array(prod(ctx.input_shape(0))))
        return None
    return prod((cast(n, ctx.attr("out_type")) for n in sizes[1:]), start=cast(sizes[0], ctx.attr("out_type")))


@xla_kernel("Rank", metadata=True)
def _rank(ctx: XlaOpKernelContext) -> Any:
    ctx.set_constant_output(0, np.array(len(ctx.input_expression(0).shape)))


@xla_kernel("Reshape", const=("shape",))
def _reshape(ctx: XlaOpKernelContext) -> Any:
    """Emit a reshape for constant sizes of a static array, else a dynamic one."""
    x = ctx.dynamic_input("tensor")
    if (bounds := _run_time_shape(ctx, x)) is None:
        return xla.reshape(x, reshaped(prod(sizes_of(x)), ctx.constant_input("shape")))
    result, check = reshape_at_run_time(x, ctx.input("shape"), *bounds)
    return checked(ctx, result, [check])


@lowering("ExpandDims", const=("dim",))
def _expand_dims(x: XlaOp, dim: Array) -> XlaOp:
    axis = axis_of(dim, rank_of(x) + 1, "dim")
    return xla.reshape(x, (*sizes_of(x)[:axis], 1, *sizes_of(x)[axis:]))


@lowering("Squeeze", attrs=("squeeze_dims",))
def _squeeze(x: XlaOp, *, squeeze_dims: Sequence[int]) -> XlaOp:
    removed = squeezed_axes(sizes_of(x), squeeze_dims)
    return xla.reshape(x, [n for d, n in enumerate(sizes_of(x)) if d not in removed])


@xla_kernel("BroadcastTo", const=("shape",))
def _broadcast_to(ctx: XlaOpKernelContext) -> Any:
    x = ctx.dynamic_input("input")
    if (bounds := _run_time_shape(ctx, x)) is None:
        return broadcast_to(x, read_sizes(ctx.constant_input("shape"), "shape"))
    result, checks = broadcast_at_run_time(x, ctx.input("shape"), *bounds)
    return checked(ctx, result, checks)


def _run_time_shape(ctx: XlaOpKernelContext, x: XlaOp) -> Range | None:
    """Return the range of the sizes of a result; None if they, and those of the operand, are constants."""
    sizes = ctx.input_expression("shape")
    found = None if ctx.xla.constant_value(sizes) is not None else ctx.xla.range_of(sizes)
    return (ctx.constant_input("shape"),) * 2 if found is None and is_dynamic(x) else found


def _register_constants(name: str, function: Any, inputs: Sequence[str]) -> None:
    @xla_kernel(name, const=inputs)
    def kernel(ctx: XlaOpKernelContext) -> Any:
        """Output constants computed from constant shapes."""
        result = function(*(ctx.constant_input(n) for n in inputs))
        for i, value in enumerate(result if isinstance(result, tuple) else (result,)):
            ctx.set_constant_output(i, value)


_register_constants("BroadcastArgs", broadcast_args, ("s0", "s1"))
_register_constants("BroadcastGradientArgs", broadcast_gradient_args, ("s0", "s1"))


@lowering("Bitcast", attrs=("type",))
def _bitcast(x: XlaOp, *, type: DataType) -> XlaOp:
    """Emit a bitcast-convert; complex numbers, for which HLO has none, are converted as pairs of floats."""
    target = element_type(type)
    if x.shape.dtype is target:
        return x
    if is_complex(x) or target.is_complex:
        return _bitcast_parts(x, target)
    return xla.bitcast_convert(x, target)


_PARTS = {ElementType.C64: ElementType.F32, ElementType.C128: ElementType.F64}
_UNITS = {8: ElementType.U8, 16: ElementType.U16, 32: ElementType.U32, 64: ElementType.U64}


def _bitcast_parts(x: XlaOp, target: ElementType) -> XlaOp:
    """Convert via unsigned integers of the smallest width involved, packed along a last dimension."""
    kind = x.shape.dtype
    width = min(_PARTS.get(kind, kind).bits, _PARTS.get(target, target).bits)
    if width not in _UNITS:
        raise UnimplementedError(f"a bitcast of {kind} to {target}")
    shape = list(sizes_of(x))
    if target.bits > kind.bits:
        if not shape or shape[-1] != target.bits // kind.bits:
            raise ShapeError(
                f"a cast to {target} needs a last dimension of {target.bits // kind.bits}; the shape is {shape}"
            )
        shape.pop()
    elif target.bits < kind.bits:
        shape.append(kind.bits // target.bits)
    if is_complex(x):
        x = xla.concatenate([xla.reshape(p, (*sizes_of(x), 1)) for p in (xla.real(x), xla.imag(x))], rank_of(x))
    units = xla.bitcast_convert(x, _UNITS[width])
    if not target.is_complex:
        count = target.bits // width
        return xla.bitcast_convert(xla.reshape(units, (*shape, count) if count > 1 else shape), target)
    part = _PARTS[target]
    count = part.bits // width
    parts = xla.bitcast_convert(xla.reshape(units, (*shape, 2, count) if count > 1 else (*shape, 2)), part)
    halves = (xla.slice_in_dim(parts, k, k + 1, 1, len(shape)) for k in range(2))
    return xla.reshape(xla.complex_(*halves), shape)


# ---------------------------------------------------------------------------------------- selection and comparison


@lowering("Select")
def _select(condition: XlaOp, t: XlaOp, e: XlaOp) -> XlaOp:
    if sizes_of(t) != sizes_of(e):
        raise ShapeError(f"t {list(sizes_of(t))} and e {list(sizes_of(e))} must have one shape")
    sizes, condition_sizes = sizes_of(t), sizes_of(condition)
    if len(condition_sizes) == 1 and len(sizes) > 1 and condition_sizes[0] == sizes[0]:
        condition = xla.broadcast_in_dim(condition, sizes, (0,))
    elif condition_sizes and condition_sizes != sizes:
        raise ShapeError(f"a condition of {list(condition_sizes)} does not choose among arrays of {list(sizes)}")
    return select(condition, t, e)


@lowering("SelectV2")
def _select_v2(condition: XlaOp, t: XlaOp, e: XlaOp) -> XlaOp:
    return select(condition, t, e)


@lowering("InvertPermutation")
def _invert_permutation(x: XlaOp) -> XlaOp:
    """Compare each index with all values; an index without a match gets 0."""
    if rank_of(x) != 1:
        raise ShapeError(f"x must be a vector; its shape is {list(sizes_of(x))}")
    size = sizes_of(x)[0]
    indices = iota_along(x.builder, x.shape.dtype, (size, size), 1)
    hit = xla.eq(xla.broadcast_in_dim(x, (size, size), (1,)), iota_along(x.builder, x.shape.dtype, (size, size), 0))
    return sum_of(select(hit, indices, zeros_like(indices)), [1])


def _register_bound(name: str, compare: Any) -> None:
    @lowering(name, attrs=("out_type",))
    def search(rows: XlaOp, values: XlaOp, *, out_type: DataType) -> XlaOp:
        """Count the elements of the row below each value."""
        if rank_of(rows) != 2 or rank_of(values) != 2 or sizes_of(rows)[0] != sizes_of(values)[0]:
            raise ShapeError(
                f"rows {list(sizes_of(rows))} and values {list(sizes_of(values))} must be matrices of equal rows"
            )
        sizes = (*sizes_of(values), sizes_of(rows)[1])
        below = compare(xla.broadcast_in_dim(rows, sizes, (0, 2)), xla.broadcast_in_dim(values, sizes, (0, 1)))
        return sum_of(xla.convert(below, element_type(out_type)), [2])


_register_bound("LowerBound", xla.lt)
_register_bound("UpperBound", xla.le)


@lowering("ToBool")
def _to_bool(x: XlaOp) -> Any:
    if rank_of(x):
        return np.array(0 not in sizes_of(x))
    return xla.ne(x, zeros_like(x))


# ------------------------------------------------------------------------------------------------ in-place updates


def _register_inplace(name: str, change: Any) -> None:
    @lowering(name)
    def kernel(x: XlaOp, i: XlaOp, v: XlaOp) -> XlaOp:
        """Update row by row, so that duplicate indices accumulate."""
        if rank_of(i) != 1 or sizes_of(v) != (sizes_of(i)[0], *sizes_of(x)[1:]):
            raise ShapeError(f"rows {list(sizes_of(i))} of {list(sizes_of(x))} cannot become {list(sizes_of(v))}")
        rest = [scalar(i, 0)] * (rank_of(x) - 1)
        for k in range(sizes_of(i)[0]):
            index = xla.reshape(xla.slice_in_dim(i, k, k + 1), ())
            row = xla.slice_in_dim(v, k, k + 1)
            old = xla.dynamic_slice(x, [index, *rest], (1, *sizes_of(x)[1:]))
            x = xla.dynamic_update_slice(x, change(old, row), [index, *rest])
        return x


_register_inplace("InplaceUpdate", lambda old, row: row)
_register_inplace("InplaceAdd", lambda old, row: old + row)
_register_inplace("InplaceSub", lambda old, row: old - row)


@lowering("ParallelConcat", attrs=("shape",))
def _parallel_concat(values: list[XlaOp], *, shape: TensorShape) -> XlaOp:
    return xla.concatenate(values, 0)


# -------------------------------------------------------------------------------------------------------- diagonals


@lowering("Diag")
def _diag(diagonal: XlaOp) -> XlaOp:
    if not rank_of(diagonal):
        raise ShapeError("the diagonal must have at least one dimension; it is a scalar")
    size = prod(sizes_of(diagonal))
    flat = xla.reshape(diagonal, (size,))
    return xla.reshape(_diagonal_matrix(flat, size), sizes_of(diagonal) * 2)


def _diagonal_matrix(vector: XlaOp, size: int) -> XlaOp:
    rows = iota_along(vector.builder, ElementType.S32, (size, size), 0)
    columns = iota_along(vector.builder, ElementType.S32, (size, size), 1)
    repeated = xla.broadcast_in_dim(vector, (size, size), (1,))
    return select(xla.eq(rows, columns), repeated, zeros_like(repeated))


@lowering("DiagPart")
def _diag_part(x: XlaOp) -> XlaOp:
    half = rank_of(x) // 2
    if not half or rank_of(x) % 2 or sizes_of(x)[:half] != sizes_of(x)[half:]:
        raise ShapeError(f"the first half of the dimensions must equal the second: {list(sizes_of(x))}")
    size = prod(sizes_of(x)[:half])
    flat = xla.reshape(x, (size, size))
    rows = iota_along(x.builder, ElementType.S32, (size, size), 0)
    columns = iota_along(x.builder, ElementType.S32, (size, size), 1)
    diagonal = select(xla.eq(rows, columns), flat, zeros_like(flat))
    return xla.reshape(reduced(diagonal, "add", scalar(diagonal, 0), [0]), sizes_of(x)[:half])


@lowering(("MatrixBandPart", "BatchMatrixBandPart"))
def _band_part(x: XlaOp, num_lower: XlaOp, num_upper: XlaOp) -> XlaOp:
    """Set elements outside a band to zero; its bounds may be dynamic."""
    if rank_of(x) < 2:
        raise ShapeError(f"the input must hold matrices; its shape is {list(sizes_of(x))}")
    kind, rank = num_lower.shape.dtype, rank_of(x)
    difference = iota_along(x.builder, kind, sizes_of(x), rank - 2) - iota_along(x.builder, kind, sizes_of(x), rank - 1)
    lower, upper = (broadcast_to(n, sizes_of(x)) for n in (num_lower, num_upper))
    zero = zeros_like(difference)
    inside = xla.and_(
        xla.or_(xla.lt(lower, zero), xla.le(difference, lower)),
        xla.or_(xla.lt(upper, zero), xla.le(-difference, upper)),
    )
    return select(inside, x, zeros_like(x))


def _gather_diagonals(x: XlaOp, band: Band, padding: XlaOp) -> XlaOp:
    """Gather the diagonals of matrices, one per row, with constant indices."""
    i, j, row, column = band.element_indices()
    numbers = np.full((band.upper - band.lower + 1, band.longest), -1, np.int64)
    numbers[row, column] = i * band.columns + j
    return _gather_flat(x, 2, numbers.reshape(band.shape), padding)


def _set_diagonals(diagonals: XlaOp, band: Band, x: XlaOp) -> XlaOp:
    """Replace diagonals of matrices."""
    i, j, row, column = band.element_indices()
    numbers = np.full((band.rows, band.columns), -1, np.int64)
    numbers[i, j] = row * band.longest + column
    batch = sizes_of(x)[:-2]
    flat = xla.reshape(diagonals, (*batch, (band.upper - band.lower + 1) * band.longest))
    replaced = _gather_flat(flat, 1, numbers, None)
    inside = xla.constant(x.builder, numbers >= 0)
    return select(broadcast_to(inside, sizes_of(x)), replaced, x)


def _gather_flat(x: XlaOp, inner: int, numbers: Array, padding: XlaOp | None) -> XlaOp:
    """Gather elements of the last `inner` dimensions by flat index; -1 means padding."""
    rank = rank_of(x)
    batch, rest = sizes_of(x)[: rank - inner], sizes_of(x)[rank - inner :]
    flat = xla.reshape(x, (*batch, prod(rest)))
    sizes = (*batch, *numbers.shape)
    if not prod(sizes) or not prod(rest):
        empty_result = full_like(xla.broadcast(scalar(x, 0), sizes), 0)
        return empty_result if padding is None else broadcast_to(padding, sizes)
    count = len(batch)
    result = xla.gather(
        flat,
        xla.constant(x.builder, np.maximum(numbers, 0)),
        offset_dims=tuple(range(count)),
        collapsed_slice_dims=(count,),
        start_index_map=(count,),
        index_vector_dim=numbers.ndim,
        slice_sizes=(*batch, 1),
    )
    if padding is None or (numbers >= 0).all():
        return result
    inside = broadcast_to(xla.constant(x.builder, numbers >= 0), sizes)
    return select(inside, result, broadcast_to(padding, sizes))


_MAIN_DIAGONAL, _ANY_SIZE = np.array(0), np.array(-1)


def _like(x: XlaOp) -> Array:
    return np.broadcast_to(np.zeros((), bool), sizes_of(x))


def _fill_band(diagonal: XlaOp, band: Band, padding: XlaOp) -> XlaOp:
    batch = sizes_of(diagonal)[: rank_of(diagonal) - len(band.shape)]
    return _set_diagonals(diagonal, band, broadcast_to(padding, (*batch, band.rows, band.columns)))


@lowering(("MatrixDiag", "BatchMatrixDiag"))
def _matrix_diag(diagonal: XlaOp) -> XlaOp:
    return _fill_band(
        diagonal, band_to_fill(_like(diagonal), _MAIN_DIAGONAL, _ANY_SIZE, _ANY_SIZE, "LEFT_LEFT"), scalar(diagonal, 0)
    )


def _matrix_diag_v3(
    diagonal: XlaOp, k: Array, num_rows: Array, num_cols: Array, padding: XlaOp, *, align: str = "LEFT_LEFT"
) -> XlaOp:
    return _fill_band(diagonal, band_to_fill(_like(diagonal), k, num_rows, num_cols, align), padding)


_FILL = ("k", "num_rows", "num_cols")
lowering("MatrixDiagV2", _matrix_diag_v3, const=_FILL)
lowering("MatrixDiagV3", _matrix_diag_v3, attrs=("align",), const=_FILL)


@lowering("MatrixDiagPart")
def _matrix_diag_part(x: XlaOp) -> XlaOp:
    return _gather_diagonals(x, band_of(_like(x), _MAIN_DIAGONAL), scalar(x, 0))


def _matrix_diag_part_v3(x: XlaOp, k: Array, padding: XlaOp, *, align: str = "LEFT_LEFT") -> XlaOp:
    return _gather_diagonals(x, band_of(_like(x), k, align), padding)


def _diag_part_padded(x: XlaOp, k: Array, padding: Array, *, align: str) -> XlaOp:
    """Take diagonals with a constant padding value."""
    return _matrix_diag_part_v3(x, k, xla.constant(x.builder, padding, x.shape.dtype), align=align)


lowering("MatrixDiagPartV2", _matrix_diag_part_v3, const=("k",))
lowering("MatrixDiagPartV3", _diag_part_padded, attrs=("align",), const=("k", "padding_value"))


def _matrix_set_diag(x: XlaOp, diagonal: XlaOp, k: Array = _MAIN_DIAGONAL, *, align: str = "LEFT_LEFT") -> XlaOp:
    band = band_of(_like(x), k, align)
    if sizes_of(diagonal) != (*sizes_of(x)[:-2], *band.shape):
        raise ShapeError(f"diagonals of {list(sizes_of(diagonal))} do not fit matrices of {list(sizes_of(x))}")
    return _set_diagonals(diagonal, band, x)


lowering("MatrixSetDiag", _matrix_set_diag)
lowering("MatrixSetDiagV2", _matrix_set_diag, const=("k",))
lowering("MatrixSetDiagV3", _matrix_set_diag, attrs=("align",), const=("k",))


# ---------------------------------------------------------------------------------------------- results of dynamic size


@lowering("Where", types={"T": (*NUMBER, *_dtypes("bool", "qint8", "quint8", "qint32"))})
def _where(x: XlaOp) -> XlaOp:
    """Pack the indices of nonzero elements at the front, and set the dynamic size to their number."""
    sizes = sizes_of(x)
    nonzero = x if x.shape.dtype is ElementType.PRED else xla.ne(x, zeros_like(x))
    order, count = compress_indices(xla.reshape(nonzero, (prod(sizes),)))
    order = xla.convert(order, ElementType.S64)
    columns = []
    for d, size in enumerate(sizes):
        index = order / scalar(order, max(prod(sizes[d + 1 :]), 1))
        columns.append(xla.reshape(xla.remainder(index, scalar(order, max(size, 1))), (prod(sizes), 1)))
    indices = xla.concatenate(columns, 1) if columns else full(x.builder, 0, DataType.DT_INT64, (1, 0))
    return set_dynamic_size(indices, count)


@lowering("Unique", attrs=("out_idx",))
def _unique(x: XlaOp, *, out_idx: DataType) -> list[XlaOp]:
    if rank_of(x) != 1:
        raise ShapeError(f"x must be a vector; its shape is {list(sizes_of(x))}")
    return _unique_slices(x, 0, out_idx)


@lowering("UniqueV2", attrs=("out_idx",), const=("axis",))
def _unique_v2(x: XlaOp, axis: Array, *, out_idx: DataType) -> list[XlaOp]:
    if axis.ndim > 1 or axis.size > 1:
        raise ShapeError(f"axis must hold one number or none; its shape is {list(axis.shape)}")
    return _unique_slices(x, axis_of(axis, rank_of(x)), out_idx) if axis.size else _unique(x, out_idx=out_idx)


def _unique_slices(x: XlaOp, axis: int, out_idx: DataType) -> list[XlaOp]:
    """Return the distinct slices in order of appearance, and for each slice the number of its value."""
    size = sizes_of(x)[axis]
    order = [axis, *(d for d in range(rank_of(x)) if d != axis)]
    slices = xla.transpose(x, order) if rank_of(x) > 1 else x
    if not size:
        return [x, full(x.builder, 0, out_idx, (0,))]
    rows = xla.reshape(slices, (size, prod(sizes_of(slices)[1:])))
    vector = rank_of(x) == 1 or sizes_of(rows)[1] == 1
    first = first_equal(xla.reshape(rows, (size,))) if vector else first_equal_row(rows)
    is_first, number = number_groups(first)
    unique_indices, count = compress_indices(is_first)
    result = rows_at(slices, unique_indices)
    if rank_of(x) > 1:
        result = xla.transpose(result, [order.index(d) for d in range(rank_of(x))])
    return [set_dynamic_size(result, count, axis), cast(number, out_idx)]


@lowering("ListDiff", attrs=("out_idx",), const=("x", "y"), types={"T": _dtypes("int32", "int64")})
def _list_diff(x: Array, y: Array, *, out_idx: DataType) -> list[Array]:
    """Output constants, since both lists are constants."""
    for name, values in (("x", x), ("y", y)):
        if values.ndim != 1:
            raise ShapeError(f"{name} must be a vector; its shape is {list(values.shape)}")
    kept_positions = np.flatnonzero(~np.isin(x, y))
    return [x[kept_positions], kept_positions.astype(out_idx.numpy)]
