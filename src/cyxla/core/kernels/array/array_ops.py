"""Constants, identities, shapes, selection, unique values, diagonals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.diagonals import Band, band_of, band_to_fill
from cyxla.core.framework.geometry.reshaping import broadcast_args, broadcast_gradient_args, reshaped, squeezed_axes
from cyxla.core.framework.geometry.shape_operands import axis_of, scalar_of, sizes_of
from cyxla.core.framework.kernel_decorators import array_kernel, kernel
from cyxla.core.framework.numeric_limits import wide_type
from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DATA, NUMBER, QUANTIZED, DataType
from cyxla.core.kernels.lib.elementwise import check_broadcast, check_same_shape
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


# ------------------------------------------------------------------------------------------ constants and identities


@kernel("Const")
class ConstantOp(OpKernel):
    """Constant held by the node's attribute."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        node_def = construction.props.node_def
        slim = replace(node_def, attr={name: a for name, a in node_def.attr.items() if name != "value"})
        super().__init__(construction, slim)  # the kernel keeps the array alone
        value, dtype = construction.get_attr("value", "tensor"), construction.get_attr("dtype")
        construction.require(value.dtype == dtype, f"the value is {value.dtype}, but the constant is declared {dtype}")
        self.const_tensor = construction.device.make_tensor(value)

    def compute(self, ctx: OpKernelContext) -> None:
        """Output the constant."""
        ctx.set_output(0, self.const_tensor)


@kernel(("Placeholder", "PlaceholderV2"))
def placeholder(ctx: OpKernelContext) -> None:
    """Raise: a placeholder must be fed."""
    kernel_ = ctx.op_kernel
    raise InvalidArgumentError(
        f"placeholder '{kernel_.name}' of {kernel_.output_types[0]}{kernel_.attrs['shape']} has no value",
        hint=f"feed one: run(fetches, {{'{kernel_.name}:0': array}})",
    )


_IDENTITIES = (
    "Identity", "StopGradient", "PlaceholderWithDefault", "Snapshot", "PreventGradient", "GuaranteeConst", "Copy",
)  # fmt: skip


@array_kernel(_IDENTITIES)
def identity(x: Array) -> Array:
    """Return the input."""
    return x


@array_kernel("IdentityN")
def _identities(inputs: list[Array]) -> list[Array]:
    return inputs


@array_kernel("DeepCopy")
def _copy(x: Array) -> Array:
    return x.copy()


@array_kernel("EnsureShape", attrs=("shape",))
def _ensure_shape(x: Array, *, shape: TensorShape) -> Array:
    if not shape.is_compatible_with(TensorShape(x.shape)):
        raise ShapeError(f"the shape {list(x.shape)} is not an instance of {shape}")
    return x


@array_kernel("OnesLike")
def _ones_like(x: Array) -> Array:
    return np.ones(x.shape, x.dtype)


@array_kernel("ZerosLike", types={"T": (*DATA, *QUANTIZED)})
def _zeros_like(x: Array) -> Array:
    return np.full(x.shape, b"", object) if x.dtype.hasobject else np.zeros(x.shape, x.dtype)


@array_kernel("ToBool")
def _to_bool(x: Array) -> Array:
    """Return True for a nonzero number, a nonempty string, or an array with elements."""
    return np.array(bool(x[()]) if not x.ndim else x.size > 0)


# ------------------------------------------------------------------------------------------------- making arrays


@array_kernel("Fill")
def _fill(dims: Array, value: Array) -> Array:
    if value.ndim:
        raise ShapeError(f"value must be a scalar; its shape is {list(value.shape)}")
    return np.full(sizes_of(dims, "dims"), value, value.dtype)


@array_kernel("Empty", attrs=("dtype",))
def _empty(shape: Array, *, dtype: DataType) -> Array:
    """Return zeros: without `init` the contents are unspecified."""
    result = np.zeros(sizes_of(shape, "shape"), dtype.numpy)
    if dtype is DataType.DT_STRING:
        result.fill(b"")
    return result


@array_kernel("LinSpace")
def _linspace(start: Array, stop: Array, num: Array) -> Array:
    for name, operand in (("start", start), ("stop", stop), ("num", num)):
        if operand.ndim:
            raise ShapeError(f"{name} must be a scalar; its shape is {list(operand.shape)}")
    if num <= 0:
        raise InvalidArgumentError(f"num must be positive; it is {num}")
    if num == 1:
        return start.reshape(1)
    wide: Array = start.astype(wide_type(start.dtype))
    step: Array = (stop.astype(wide.dtype) - wide) / wide.dtype.type(int(num) - 1)
    result = (wide + step * np.arange(int(num), dtype=wide.dtype)).astype(start.dtype)
    result[-1] = stop
    return result


@array_kernel("OneHot", attrs=("axis",))
def _one_hot(indices: Array, depth: Array, on_value: Array, off_value: Array, *, axis: int) -> Array:
    """Expand each index to a one-hot vector along a new dimension; an index out of range gives `off_value` only."""
    for name, operand in (("depth", depth), ("on_value", on_value), ("off_value", off_value)):
        if operand.ndim:
            raise ShapeError(f"{name} must be a scalar; its shape is {list(operand.shape)}")
    if depth < 0:
        raise InvalidArgumentError(f"depth must not be negative; it is {depth}")
    if not -1 <= axis <= indices.ndim:
        raise InvalidArgumentError(f"axis {axis} is out of range [-1, {indices.ndim}]")
    hot = indices[..., None].astype(np.int64) == np.arange(int(depth))
    return np.where(np.moveaxis(hot, -1, axis), on_value, off_value).astype(on_value.dtype, copy=False)


# ---------------------------------------------------------------------------------------------------------- shapes


@array_kernel("Shape", attrs=("out_type",))
def _shape(x: Array, *, out_type: DataType) -> Array:
    return np.array(x.shape, out_type.numpy)


@array_kernel("ShapeN", attrs=("out_type",))
def _shapes(inputs: list[Array], *, out_type: DataType) -> list[Array]:
    return [np.array(x.shape, out_type.numpy) for x in inputs]


@array_kernel("Size", attrs=("out_type",))
def _size(x: Array, *, out_type: DataType) -> Array:
    if x.size > np.iinfo(out_type.numpy).max:
        raise InvalidArgumentError(f"{x.size} elements are too many for {out_type}", hint="use out_type=int64")
    return np.array(x.size, out_type.numpy)


@array_kernel("Rank")
def _rank(x: Array) -> Array:
    return np.array(x.ndim, np.int32)


@array_kernel("Reshape")
def _reshape(x: Array, shape: Array) -> Array:
    return x.reshape(reshaped(x.size, shape))


@array_kernel("ExpandDims")
def _expand_dims(x: Array, dim: Array) -> Array:
    return np.expand_dims(x, axis_of(dim, x.ndim + 1, "dim"))


@array_kernel("Squeeze", attrs=("squeeze_dims",))
def _squeeze(x: Array, *, squeeze_dims: Sequence[int]) -> Array:
    return x.squeeze(squeezed_axes(x.shape, squeeze_dims))


@array_kernel("BroadcastTo")
def _broadcast_to(x: Array, shape: Array) -> Array:
    sizes = sizes_of(shape, "shape")
    try:
        return np.broadcast_to(x, sizes).copy()
    except ValueError:
        raise ShapeError(f"{list(x.shape)} does not broadcast to {list(sizes)}") from None


array_kernel("BroadcastArgs", broadcast_args)
array_kernel("BroadcastGradientArgs", broadcast_gradient_args)


@array_kernel("Bitcast", attrs=("type",))
def _bitcast(x: Array, *, type: DataType) -> Array:
    """Reinterpret the bytes as another type; the last dimension is added or removed if the widths differ."""
    old, new = x.dtype.itemsize, type.numpy.itemsize
    source = np.ascontiguousarray(x).reshape(x.shape)  # has a dimension more than a scalar
    if old == new:
        return source.view(type.numpy)
    if old > new:
        return source.reshape(*x.shape, 1).view(type.numpy)
    if not x.ndim or x.shape[-1] != new // old:
        raise ShapeError(f"a cast to {type} needs a last dimension of {new // old}; the shape is {list(x.shape)}")
    return source.view(type.numpy).reshape(x.shape[:-1])


# ----------------------------------------------------------------------------------------- choosing and comparing


@array_kernel("Select")
def _select(condition: Array, t: Array, e: Array) -> Array:
    """Select by element, by row, or as a whole if the condition is a scalar."""
    check_same_shape(t, e)
    if condition.ndim == 1 and t.ndim > 1 and len(condition) == t.shape[0]:
        condition = condition.reshape(-1, *[1] * (t.ndim - 1)) if len(condition) else np.zeros(t.shape, bool)
    elif condition.ndim and condition.shape != t.shape:
        raise ShapeError(f"a condition of {list(condition.shape)} does not choose among arrays of {list(t.shape)}")
    return np.where(condition, t, e)


@array_kernel("SelectV2")
def _select_v2(condition: Array, t: Array, e: Array) -> Array:
    for x, y in ((condition, t), (condition, e), (t, e)):
        check_broadcast(x, y)
    return np.where(condition, t, e)


@array_kernel("Where")
def _coordinates_of_nonzero(x: Array) -> Array:
    """Return the coordinates of nonzero elements in row-major order."""
    return np.argwhere(x).astype(np.int64).reshape(-1, x.ndim) if x.ndim else _where_scalar(x)


def _where_scalar(x: Array) -> Array:
    return np.zeros((int(bool(x)), 0), np.int64)


def _check_vector(x: Array, name: str) -> None:
    if x.ndim != 1:
        raise ShapeError(f"{name} must be a vector; its shape is {list(x.shape)}")


def _unique_slices(x: Array) -> tuple[Array, Array]:
    """Return the first index of each distinct slice of dimension 0, in order of appearance, and each slice's number."""
    keys = x.reshape(len(x), prod(x.shape[1:]))
    index_of_slice: dict[Any, int] = {}
    inverse = np.empty(len(x), np.int64)
    first = []
    rows: Any = keys.tolist() if keys.dtype.hasobject else keys
    for k, row in enumerate(rows):
        key = tuple(row) if keys.dtype.hasobject else _key(row)
        if key not in index_of_slice:
            index_of_slice[key] = len(index_of_slice)
            first.append(k)
        inverse[k] = index_of_slice[key]
    return np.array(first, np.int64), inverse


def _key(row: Array) -> bytes:
    """Return bytes that are equal for equal rows; -0 equals 0."""
    return (row + row.dtype.type(0)).tobytes() if row.dtype.kind in "fc" else row.tobytes()


@array_kernel("Unique", attrs=("out_idx",))
def _unique(x: Array, *, out_idx: DataType) -> tuple[Array, Array]:
    _check_vector(x, "x")
    first, inverse = _unique_slices(x)
    return x[first], inverse.astype(out_idx.numpy)


@array_kernel("UniqueWithCounts", attrs=("out_idx",))
def _unique_with_counts(x: Array, *, out_idx: DataType) -> tuple[Array, Array, Array]:
    y, inverse = _unique(x, out_idx=out_idx)
    return y, inverse, np.bincount(inverse, minlength=len(y)).astype(out_idx.numpy)


@array_kernel("UniqueV2", attrs=("out_idx",))
def _unique_v2(x: Array, axis: Array, *, out_idx: DataType) -> tuple[Array, Array]:
    """Return the distinct slices along an axis, or the distinct elements of a vector if there is no axis."""
    if axis.ndim > 1 or axis.size > 1:
        raise ShapeError(f"axis must hold one number or none; its shape is {list(axis.shape)}")
    if not axis.size:
        return _unique(x, out_idx=out_idx)
    along = axis_of(axis, x.ndim)
    first, inverse = _unique_slices(np.moveaxis(x, along, 0))
    return np.take(x, first, axis=along), inverse.astype(out_idx.numpy)


@array_kernel("ListDiff", attrs=("out_idx",))
def _list_diff(x: Array, y: Array, *, out_idx: DataType) -> tuple[Array, Array]:
    """Return the elements of x that are not in y, and their indices."""
    _check_vector(x, "x")
    _check_vector(y, "y")
    excluded = set(y.tolist())
    positions = np.array([k for k, value in enumerate(x.tolist()) if value not in excluded], np.int64)
    return x[positions], positions.astype(out_idx.numpy)


@array_kernel("InvertPermutation")
def _invert_permutation(x: Array) -> Array:
    _check_vector(x, "x")
    bad = (x < 0) | (x >= len(x))
    if bad.any():
        raise InvalidArgumentError(f"{x[bad][0]} is out of range for a permutation of {len(x)} elements")
    counts = np.bincount(x, minlength=len(x))
    if (counts > 1).any():
        raise InvalidArgumentError(f"{int(np.argmax(counts > 1))} appears twice in a permutation")
    result = np.empty_like(x)
    result[x] = np.arange(len(x), dtype=x.dtype)
    return result


def _bound_kernel(side: Any) -> Callable[..., Array]:
    def search(sorted_inputs: Array, values: Array, *, out_type: DataType) -> Array:
        """Return the insertion index of each value in its row."""
        for name, operand in (("sorted_inputs", sorted_inputs), ("values", values)):
            if operand.ndim != 2:
                raise ShapeError(f"{name} must be a matrix; its shape is {list(operand.shape)}")
        if len(sorted_inputs) != len(values):
            raise ShapeError(f"{len(sorted_inputs)} rows to search in, {len(values)} rows of values")
        rows = [np.searchsorted(row, v, side=side) for row, v in zip(sorted_inputs, values, strict=True)]
        return np.array(rows, out_type.numpy).reshape(values.shape)

    return search


array_kernel("LowerBound", _bound_kernel("left"), attrs=("out_type",))
array_kernel("UpperBound", _bound_kernel("right"), attrs=("out_type",))


# ------------------------------------------------------------------------------------------------ changes in place


def _register_inplace(name: str, update: Callable[[Array, Any, Array], None], types: Sequence[DataType] | None) -> None:
    @array_kernel(name, types=None if types is None else {"T": types})
    def kernel(x: Array, i: Array, v: Array) -> Array:
        """Return a copy of x with some rows changed."""
        if i.ndim != 1 or v.shape != (len(i), *x.shape[1:]):
            raise ShapeError(f"rows {list(i.shape)} of {list(x.shape)} cannot become {list(v.shape)}")
        result = x.copy()
        update(result, np.mod(i, max(len(x), 1)), v)
        return result


_register_inplace("InplaceUpdate", lambda x, i, v: x.__setitem__(i, v), None)
_register_inplace("InplaceAdd", np.add.at, NUMBER)
_register_inplace("InplaceSub", np.subtract.at, NUMBER)


@array_kernel("ParallelConcat", attrs=("shape",))
def _parallel_concat(values: list[Array], *, shape: TensorShape) -> Array:
    """Concatenate slices of one row each."""
    for value in values:
        if value.shape != (1, *shape.as_list()[1:]):
            raise ShapeError(f"a value of {list(value.shape)} is not a row of {shape}")
    return np.concatenate(values)


# -------------------------------------------------------------------------------------------------------- diagonals


@array_kernel("Diag")
def _diag(diagonal: Array) -> Array:
    if not diagonal.ndim:
        raise ShapeError("the diagonal must have at least one dimension; it is a scalar")
    result = np.zeros((diagonal.size, diagonal.size), diagonal.dtype)
    np.fill_diagonal(result, diagonal.reshape(-1))
    return result.reshape(diagonal.shape * 2)


@array_kernel("DiagPart")
def _diag_part(x: Array) -> Array:
    half = x.ndim // 2
    if not x.ndim or x.ndim % 2 or x.shape[:half] != x.shape[half:]:
        raise ShapeError(f"the first half of the dimensions must equal the second; the shape is {list(x.shape)}")
    size = prod(x.shape[:half])
    return np.diagonal(x.reshape(size, size)).reshape(x.shape[:half]).copy()


@array_kernel(("MatrixBandPart", "BatchMatrixBandPart"))
def _band_part(x: Array, num_lower: Array, num_upper: Array) -> Array:
    """Set the elements outside a band of each matrix to zero; a negative number keeps that whole triangle."""
    if x.ndim < 2:
        raise ShapeError(f"the input must hold matrices; its shape is {list(x.shape)}")
    rows, columns = x.shape[-2:]
    lower, upper = scalar_of(num_lower, "num_lower"), scalar_of(num_upper, "num_upper")
    if lower > rows or upper > columns:
        raise InvalidArgumentError(f"{lower} diagonals below and {upper} above do not exist in {rows} x {columns}")
    i, j = np.indices((rows, columns), sparse=True)
    inside = ((lower < 0) | (i - j <= lower)) & ((upper < 0) | (j - i <= upper))
    return np.where(inside, x, np.zeros((), x.dtype))


_MAIN_DIAGONAL, _ANY_SIZE = np.array(0), np.array(-1)


def _fill_band(diagonal: Array, band: Band, padding: Array) -> Array:
    if padding.ndim:
        raise ShapeError(f"padding_value must be a scalar; its shape is {list(padding.shape)}")
    batch = diagonal.shape[: -len(band.shape)]
    return band.insert(diagonal, np.full((*batch, band.rows, band.columns), padding, diagonal.dtype))


@array_kernel(("MatrixDiag", "BatchMatrixDiag"))
def _matrix_diag(diagonal: Array) -> Array:
    band = band_to_fill(diagonal, _MAIN_DIAGONAL, _ANY_SIZE, _ANY_SIZE, "LEFT_LEFT")
    return _fill_band(diagonal, band, np.zeros((), diagonal.dtype))


@array_kernel("MatrixDiagV2")
@array_kernel("MatrixDiagV3", attrs=("align",))
def _matrix_diag_v3(
    diagonal: Array, k: Array, num_rows: Array, num_cols: Array, padding_value: Array, *, align: str = "LEFT_LEFT"
) -> Array:
    return _fill_band(diagonal, band_to_fill(diagonal, k, num_rows, num_cols, align), padding_value)


@array_kernel("MatrixDiagPart")
def _matrix_diag_part(x: Array) -> Array:
    return band_of(x, _MAIN_DIAGONAL).extract(x)


@array_kernel("MatrixDiagPartV2")
@array_kernel("MatrixDiagPartV3", attrs=("align",))
def _matrix_diag_part_v3(x: Array, k: Array, padding_value: Array, *, align: str = "LEFT_LEFT") -> Array:
    return band_of(x, k, align).extract(x, padding_value)


@array_kernel(("MatrixSetDiag", "MatrixSetDiagV2"))
@array_kernel("MatrixSetDiagV3", attrs=("align",))
def _matrix_set_diag(x: Array, diagonal: Array, k: Array = _MAIN_DIAGONAL, *, align: str = "LEFT_LEFT") -> Array:
    band = band_of(x, k, align)
    if diagonal.shape != (*x.shape[:-2], *band.shape):
        raise ShapeError(f"diagonals of {list(diagonal.shape)}; {[*x.shape[:-2], *band.shape]} are needed")
    return band.insert(diagonal, x)
