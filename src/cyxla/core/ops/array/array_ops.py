"""Constants, identities, shapes, unique values, diagonals."""

from __future__ import annotations

import numpy as np

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import (
    broadcast_inputs_shape,
    explicit_shape,
    random_shape,
    scalar_shape,
    unchanged_shape,
    unchanged_shape_with_rank,
    unchanged_shape_with_rank_at_least,
)
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import UNKNOWN, Dim, TensorShape
from cyxla.errors import InvalidArgumentError, ShapeError

# Values and their shapes -----------------------------------------------------------------------------------------


def _const_shape(c: InferenceContext) -> None:
    value, dtype = c.attr("value"), c.attr("dtype")
    if value.dtype != dtype:
        raise InvalidArgumentError(f"a constant of {value.dtype} is declared to be {dtype}")
    c.set_output(0, TensorShape(value.array.shape))


def _all_unchanged_shape(c: InferenceContext) -> None:
    """Copy each input's shape and handle to the output of the same index."""
    for i in range(c.num_outputs):
        c.set_output(i, c.input(i))
        if c.input_handle(i) is not None:
            c.set_output_handle(i, c.input_handle(i))


def _bitcast_shape(c: InferenceContext) -> None:
    """Append a dimension if the new elements are smaller, or remove the last one if they are larger."""
    input_size, output_size = c.attr("T").numpy.itemsize, c.attr("type").numpy.itemsize
    x = c.input(0)
    if x.rank is None:
        return
    if input_size > output_size:
        x = c.concatenate(x, (input_size // output_size,))
    elif input_size < output_size:
        c.with_value(c.with_rank_at_least(x, 1)[-1], output_size // input_size)
        x = c.sub_shape(x, 0, -1)
    c.set_output(0, x)


def _default_shape(c: InferenceContext) -> None:
    """Set the declared shape, which the default must fit."""
    c.merge(c.input(0), c.attr("shape"))
    c.set_output(0, c.attr("shape"))


def _ensure_shape_shape(c: InferenceContext) -> None:
    c.set_output(0, c.merge(c.input(0), c.attr("shape")))


def _parallel_concat_shape(c: InferenceContext) -> None:
    """Check that the values are rows of the declared shape."""
    shape = c.attr("shape")
    if not shape.is_fully_defined:
        raise ShapeError(f"ParallelConcat: the attr shape must be known, but is {shape}")
    row = c.concatenate(c.vector(1), c.sub_shape(c.with_rank_at_least(shape, 1), 1))
    for value in c.inputs("values"):
        c.merge(row, value)
    c.merge_dim(shape[0], c.num_inputs)
    c.set_output(0, shape)


def _shape_shape(c: InferenceContext) -> None:
    for i in range(c.num_inputs):
        c.set_output(i, (c.input(i).rank,))


# Other shapes of the same elements -------------------------------------------------------------------------------


def _reshape_shape(c: InferenceContext) -> None:
    """Infer one unknown size from the others and the number of elements."""
    x, shape = c.input(0), c.make_shape_from_shape_tensor(1)
    count = x.num_elements
    if shape.dims is None:
        return
    unknown = [i for i, d in enumerate(shape.dims) if d is None]
    known_elements = TensorShape(d for d in shape.dims if d is not None).num_elements or 0
    if count is not None and not unknown and known_elements != count:
        raise ShapeError(f"Reshape: {x} has {count} elements, {shape} has {known_elements}")
    if count is not None and len(unknown) == 1 and known_elements:
        shape = c.replace_dim(shape, unknown[0], c.divide(count, known_elements))
    c.set_output(0, shape)


def _expand_dims_shape(c: InferenceContext) -> None:
    x, value = c.input(0), c.input_tensor(1)
    if x.rank is None:
        return
    if value is None:
        c.set_output(0, c.unknown_shape_of_rank(x.rank + 1))
        return
    if value.size != 1:
        raise ShapeError(f"ExpandDims: dim must be one number, but has {value.size}")
    at = int(value.ravel()[0])
    if not -x.rank - 1 <= at <= x.rank:
        raise ShapeError(f"ExpandDims: dim {at} is out of range [{-x.rank - 1}, {x.rank}]")
    at += x.rank + 1 if at < 0 else 0
    c.set_output(0, (*x[:at], 1, *x[at:]))


def _squeeze_shape(c: InferenceContext) -> None:
    """Remove dimensions of size 1: all of them, or the listed ones."""
    x = c.input(0)
    if x.dims is None:
        return
    squeezed_axes = {c.axis(at, x) for at in c.attr("squeeze_dims")}
    for at in squeezed_axes:
        c.with_value(x[at], 1)
    if not squeezed_axes and None in x.dims:
        return
    c.set_output(0, [d for i, d in enumerate(x.dims) if (i not in squeezed_axes if squeezed_axes else d != 1)])


# Filling ---------------------------------------------------------------------------------------------------------


def _broadcast_args_shape(c: InferenceContext) -> None:
    a, b = c.with_rank(c.input(0), 1), c.with_rank(c.input(1), 1)
    c.set_output(0, (c.max(a[0], b[0]),))


def _broadcast_gradient_args_shape(c: InferenceContext) -> None:
    for i in range(2):
        c.with_rank(c.input(i), 1)
        c.set_output(i, (None,))


def _broadcast_to_shape(c: InferenceContext) -> None:
    x, shape = c.input(0), c.make_shape_from_shape_tensor(1)
    if x.rank is not None and shape.rank is not None:
        c.with_rank_at_most(x, shape.rank)
        for d, e in zip(x, shape[len(shape) - len(x) :], strict=True):
            if d not in (None, 1) and e is not None and d != e:
                raise ShapeError(f"BroadcastTo: {x} does not broadcast to {shape}")
    c.set_output(0, shape)


def _fill_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 1)
    c.with_rank(c.input(1), 0)
    random_shape(c)


def _linspace_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(0), 0)
    c.with_rank(c.input(1), 0)
    count = c.make_dim_for_scalar_input(2)
    if count == 0:
        raise ShapeError("LinSpace: num must be positive, but is 0")
    c.set_output(0, (count,))


def _one_hot_shape(c: InferenceContext) -> None:
    """Insert a dimension of the given depth at the axis."""
    indices, axis, depth = c.input(0), c.attr("axis"), c.make_dim_for_scalar_input(1)
    c.with_rank(c.input(2), 0)
    c.with_rank(c.input(3), 0)
    if axis < -1:
        raise ShapeError(f"OneHot: axis must be -1 or more, but is {axis}")
    if indices.rank is None:
        return
    if axis > indices.rank:
        raise ShapeError(f"OneHot: axis {axis} is out of range for indices of shape {indices}")
    at = indices.rank if axis == -1 else axis
    c.set_output(0, (*indices[:at], depth, *indices[at:]))


# Searching -------------------------------------------------------------------------------------------------------


def _list_diff_shape(c: InferenceContext) -> None:
    for i in range(2):
        c.with_rank(c.input(i), 1)
        c.set_output(i, (None,))


def _unique_shape(c: InferenceContext) -> None:
    c.set_output(0, (None,))
    c.set_output(1, c.with_rank(c.input(0), 1))
    if c.num_outputs == 3:
        c.set_output(2, (None,))


def _unique_along_shape(c: InferenceContext) -> None:
    """Infer the slices along the axis, if there is one."""
    x, axis = c.input(0), c.input_tensor(1)
    c.with_rank(c.input(1), 1)
    c.set_output(1, (None,))
    if axis is None or x.rank is None:
        return
    if axis.size > 1:
        raise ShapeError(f"UniqueV2: axis must be one number or none, but has {axis.size}")
    x = x if axis.size else c.with_rank(x, 1)
    at = c.axis(int(axis[0]) if axis.size else 0, x)
    c.set_output(0, c.replace_dim(x, at, None))
    c.set_output(1, (x[at],))


def _where_shape(c: InferenceContext) -> None:
    c.set_output(0, (None, c.input(0).rank))


def _search_bound_shape(c: InferenceContext) -> None:
    rows, values = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 2)
    c.set_output(0, c.replace_dim(values, 0, c.merge_dim(rows[0], values[0])))


def _select_shape(c: InferenceContext) -> None:
    """Merge the branches; the condition is a scalar, a flag per row, or a flag per element."""
    data, condition = c.merge(c.input(1), c.input(2)), c.input(0)
    if condition.rank == 1 and data.rank is not None and data.rank != 1:
        c.merge_dim(c.with_rank_at_least(data, 1)[0], condition[0])
    elif condition.rank and data.rank is not None:
        data = c.merge(data, condition)
    c.set_output(0, data)


# Diagonals -------------------------------------------------------------------------------------------------------


def _diag_shape(c: InferenceContext) -> None:
    x = c.with_rank_at_least(c.input(0), 1)
    c.set_output(0, c.concatenate(x, x))


def _diag_part_shape(c: InferenceContext) -> None:
    x = c.input(0)
    if x.rank is None:
        return
    if x.rank == 0 or x.rank % 2:
        raise ShapeError(f"DiagPart: the rank must be even and not 0, but {x} is given")
    c.set_output(0, c.merge(x[: x.rank // 2], x[x.rank // 2 :]))


def _matrix_diag_shape(c: InferenceContext) -> None:
    x = c.with_rank_at_least(c.input(0), 1)
    c.set_output(0, c.concatenate(x, (x[-1],)) if x.rank is not None else UNKNOWN)


def _matrix_diag_part_shape(c: InferenceContext) -> None:
    x = c.with_rank_at_least(c.input(0), 2)
    c.set_output(0, c.concatenate(c.sub_shape(x, 0, -2), (c.min(x[-1], x[-2]),)))


def _matrix_set_diag_shape(c: InferenceContext) -> None:
    """Check that the diagonal fits the matrices."""
    x, diagonal = c.with_rank_at_least(c.input(0), 2), c.with_rank_at_least(c.input(1), 1)
    if x.rank is not None:
        c.merge(diagonal, c.concatenate(c.sub_shape(x, 0, -2), (c.min(x[-1], x[-2]),)))
    c.set_output(0, x)


def _band_operand(c: InferenceContext, i: int) -> tuple[int, int] | None:
    """Return the lowest and highest diagonal given by an input, or None if unknown."""
    value = c.input_tensor(c.op_def.input_arg[i].name)
    if value is None:
        return None
    if value.ndim > 1 or value.size not in (1, 2):
        raise ShapeError(f"{c.op_def.name}: k must be one or two numbers, but is {value.tolist()}")
    lower, upper = int(value.ravel()[0]), int(value.ravel()[-1])
    if lower > upper:
        raise ShapeError(f"{c.op_def.name}: k must not fall, but is {value.tolist()}")
    return lower, upper


def _band_part_shape(c: InferenceContext) -> None:
    """Set one row per diagonal, with the length of the longest; a single diagonal adds no dimension."""
    x, band = c.with_rank_at_least(c.input(0), 2), _band_operand(c, 1)
    if x.rank is None or band is None:
        return
    lower, upper = band
    rows, columns = x[-2], x[-1]
    if (rows is not None and lower <= -max(rows, 1)) or (columns is not None and upper >= max(columns, 1)):
        raise ShapeError(f"{c.op_def.name}: the diagonals {lower} to {upper} are out of range for {x}")
    length: Dim = None
    if rows is not None and columns is not None:
        length = max(0, min(rows + min(upper, 0), columns - max(lower, 0)))
    tail = (length,) if lower == upper else (upper - lower + 1, length)
    c.set_output(0, c.concatenate(x[:-2], tail))


def _number(c: InferenceContext, i: int) -> int | None:
    value = c.input_tensor(i)
    if value is None:
        return None
    if value.size != 1:
        raise ShapeError(f"{c.op_def.name}: input {i} must be one number, but has {value.size}")
    return int(np.ravel(value)[0])


def _band_matrix_shape(c: InferenceContext) -> None:
    """Set the smallest matrices that hold the diagonals, or the given sizes."""
    diagonal, band = c.with_rank_at_least(c.input(0), 1), _band_operand(c, 1)
    sizes = [_number(c, 2), _number(c, 3)]
    if diagonal.rank is None or band is None:
        return
    lower, upper = band
    if lower < upper:
        c.merge_dim(c.with_rank_at_least(diagonal, 2)[-2], upper - lower + 1)
    batch = diagonal[:-1] if lower == upper else diagonal[:-2]
    length = diagonal[-1]
    if length is None or None in sizes:
        c.set_output(0, c.concatenate(batch, (None, None)))
        return
    minimum = (length - min(upper, 0), length + max(lower, 0))
    c.set_output(0, c.concatenate(batch, _matrix_size(c, sizes, minimum)))


def _matrix_size(c: InferenceContext, sizes: list[int | None], minimum: tuple[int, int]) -> tuple[int, int]:
    """Return the given sizes or the minimum; square if neither is given; one size must be the minimum."""
    rows, columns = (None if size == -1 else size for size in sizes)
    if rows is None and columns is None:
        rows = columns = max(minimum)
    rows, columns = minimum[0] if rows is None else rows, minimum[1] if columns is None else columns
    if rows < minimum[0] or columns < minimum[1] or (rows != minimum[0] and columns != minimum[1]):
        raise ShapeError(f"{c.op_def.name}: the diagonals do not fit a matrix of {rows} by {columns}")
    return rows, columns


op("Bitcast", "input: T -> output: type",
    "T: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, "
    "complex128, qint8, quint8, qint16, quint16, qint32}",
    "type: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, "
    "complex64, complex128, qint8, quint8, qint16, quint16, qint32}", shape=_bitcast_shape,
    doc="Reinterpret the bits as another type.\n\nA trailing dimension is added if the new elements are smaller, and "
    "removed if they are larger.",
)  # fmt: skip
op("BroadcastArgs", "s0: T, s1: T -> r0: T", "T: {int32, int64} = DT_INT32", shape=_broadcast_args_shape,
    doc="Return the shape that two shapes broadcast to.",
)  # fmt: skip
op("BroadcastGradientArgs", "s0: T, s1: T -> r0: T, r1: T", "T: {int32, int64} = DT_INT32",
    shape=_broadcast_gradient_args_shape, doc="Return the dimensions to sum over in the gradient of a broadcast.",
)  # fmt: skip
op("BroadcastTo", "input: T, shape: Tidx -> output: T", "T: type", "Tidx: {int32, int64} = DT_INT32",
    shape=_broadcast_to_shape, doc="Broadcast an array to a shape.",
)  # fmt: skip
op("Const", "-> output: dtype", "value: tensor", "dtype: type", shape=_const_shape, doc="Return a constant.")
op("Copy", "input: T -> output: T", "T: type", "tensor_name: string = ''", "debug_ops_spec: list(string) = []",
    allows_uninitialized_input=True, shape=unchanged_shape, doc="Copy a tensor for a debugger.",
)  # fmt: skip
op("DeepCopy", "x: T -> y: T", "T: type", stateful=True, shape=unchanged_shape,
    doc="Copy a tensor without sharing memory.",
)  # fmt: skip
op("EnsureShape", "input: T -> output: T", "shape: shape", "T: type", shape=_ensure_shape_shape,
    doc="Return the input after checking its shape at run time.",
)  # fmt: skip
op("ExpandDims", "input: T, dim: Tdim -> output: T", "T: type", "Tdim: {int32, int64} = DT_INT32",
    shape=_expand_dims_shape, doc="Insert a dimension of size 1.",
)  # fmt: skip
op("Fill", "dims: index_type, value: T -> output: T", "T: type", "index_type: {int32, int64} = DT_INT32",
    shape=_fill_shape, doc="Fill an array with one value.",
)  # fmt: skip
op("GuaranteeConst", "input: T -> output: T", "T: type", stateful=True, shape=unchanged_shape,
    doc="Return the input, which does not change between runs.",
)  # fmt: skip
op("Identity", "input: T -> output: T", "T: type", shape=unchanged_shape, doc="Return the input.")
op("IdentityN", "input: T -> output: T", "T: list(type)", shape=_all_unchanged_shape, doc="Return the inputs.")
op("ImmutableConst", "-> tensor: dtype", "dtype: type", "shape: shape", "memory_region_name: string",
    shape=explicit_shape, doc="Return a constant in read-only memory.",
)  # fmt: skip
op("InplaceAdd", "x: T, i: int32, v: T -> y: T", "T: type", shape=unchanged_shape,
    doc="Add to some rows of an array.",
)  # fmt: skip
op("InplaceSub", "x: T, i: int32, v: T -> y: T", "T: type", shape=unchanged_shape,
    doc="Subtract from some rows of an array.",
)  # fmt: skip
op("InplaceUpdate", "x: T, i: int32, v: T -> y: T", "T: type", shape=unchanged_shape,
    doc="Replace some rows of an array.",
)  # fmt: skip
op("InvertPermutation", "x: T -> y: T", "T: {int32, int64} = DT_INT32", shape=unchanged_shape_with_rank(1),
    doc="Return the inverse of a permutation.",
)  # fmt: skip
op("LinSpace", "start: T, stop: T, num: Tidx -> output: T", "T: {bfloat16, half, float, double}",
    "Tidx: {int32, int64} = DT_INT32", shape=_linspace_shape,
    doc="Return evenly spaced numbers between two ends, both included.",
)  # fmt: skip
op("ListDiff", "x: T, y: T -> out: T, idx: out_idx", "T: type", "out_idx: {int32, int64} = DT_INT32",
    shape=_list_diff_shape, doc="Return the elements of x that are not in y, and their indices.",
)  # fmt: skip
op("OneHot", "indices: TI, depth: int32, on_value: T, off_value: T -> output: T", "axis: int = -1", "T: type",
    "TI: {uint8, int8, int32, int64} = DT_INT64", shape=_one_hot_shape,
    doc="Return an array with the value \"on\" at the indices and \"off\" elsewhere.",
)  # fmt: skip
op("OnesLike", "x: T -> y: T",
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, "
    "complex128, bool}", shape=unchanged_shape, doc="Return ones of the input's shape.",
)  # fmt: skip
op("ParallelConcat", "values: N * T -> output: T", "N: int", "T: type", "shape: shape", shape=_parallel_concat_shape,
    doc="Concatenate rows along the first dimension, in any order of arrival.",
)  # fmt: skip
op("Placeholder", "-> output: dtype", "dtype: type", "shape: shape = { unknown_rank: true }", shape=explicit_shape,
    doc="Return a fed value.",
)  # fmt: skip
op("PlaceholderV2", "-> output: dtype", "dtype: type", "shape: shape", deprecated=(23, "Use Placeholder."),
    shape=explicit_shape, doc="Return a fed value.",
)  # fmt: skip
op("PlaceholderWithDefault", "input: dtype -> output: dtype", "dtype: type", "shape: shape", shape=_default_shape,
    doc="Return a fed value, or the input.",
)  # fmt: skip
op("PreventGradient", "input: T -> output: T", "T: type", "message: string = ''", shape=unchanged_shape,
    doc="Return the input; its gradient raises an error.",
)  # fmt: skip
op("Rank", "input: T -> output: int32", "T: type", shape=scalar_shape, doc="Return the number of dimensions.")
op("Reshape", "tensor: T, shape: Tshape -> output: T", "T: type", "Tshape: {int32, int64} = DT_INT32",
    shape=_reshape_shape,
    doc="Reshape an array.\n\nOne size of the shape may be -1, which is inferred from the others.",
)  # fmt: skip
op("Shape", "input: T -> output: out_type", "T: type", "out_type: {int32, int64} = DT_INT32", shape=_shape_shape,
    doc="Return the shape as a vector.",
)  # fmt: skip
op("ShapeN", "input: N * T -> output: N * out_type", "N: int", "T: type", "out_type: {int32, int64} = DT_INT32",
    shape=_shape_shape, doc="Return the shapes of several arrays.",
)  # fmt: skip
op("Size", "input: T -> output: out_type", "T: type", "out_type: {int32, int64} = DT_INT32", shape=scalar_shape,
    doc="Return the number of elements.",
)  # fmt: skip
op("Snapshot", "input: T -> output: T", "T: type", shape=unchanged_shape, doc="Return the current value of the input.")
op("Squeeze", "input: T -> output: T", "T: type", "squeeze_dims: list(int) >= 0 = []", shape=_squeeze_shape,
    doc="Remove dimensions of size 1.",
)  # fmt: skip
op("StopGradient", "input: T -> output: T", "T: type", shape=unchanged_shape,
    doc="Return the input, stopping gradients.",
)  # fmt: skip
op("Unique", "x: T -> y: T, idx: out_idx", "T: type", "out_idx: {int32, int64} = DT_INT32", shape=_unique_shape,
    doc="Return the distinct elements in order of appearance, and for each element the index of its value.",
)  # fmt: skip
op("UniqueV2", "x: T, axis: Taxis -> y: T, idx: out_idx", "T: type", "Taxis: {int32, int64} = DT_INT64",
    "out_idx: {int32, int64} = DT_INT32", shape=_unique_along_shape,
    doc="Return the distinct slices along an axis, and for each slice the index of its value.",
)  # fmt: skip
op("UniqueWithCounts", "x: T -> y: T, idx: out_idx, count: out_idx", "T: type", "out_idx: {int32, int64} = DT_INT32",
    shape=_unique_shape, doc="Return the distinct elements, for each element the index of its value, and the counts.",
)  # fmt: skip
op("Where", "input: T -> index: int64", "T: {numbertype, bool} = DT_BOOL", shape=_where_shape,
    doc="Return the coordinates of nonzero elements.",
)  # fmt: skip
op("ZerosLike", "x: T -> y: T", "T: type", shape=unchanged_shape, doc="Return zeros of the input's shape.")
op("Empty", "shape: int32 -> output: dtype", "dtype: type", "init: bool = false", stateful=True, shape=random_shape,
    doc="Return an array with unspecified contents, or with zeros on request.",
)  # fmt: skip
op("Diag", "diagonal: T -> output: T", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    shape=_diag_shape, doc="Return a tensor with the input on its diagonal.",
)  # fmt: skip
op("DiagPart", "input: T -> diagonal: T", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    shape=_diag_part_shape, doc="Return the diagonal of a tensor.",
)  # fmt: skip
op("BatchMatrixBandPart", "input: T, num_lower: int64, num_upper: int64 -> band: T", "T: type",
    deprecated=(14, "Use MatrixBandPart."), shape=unchanged_shape_with_rank_at_least(2),
    doc="Keep a central band of diagonals of matrices and set the other elements to zero.",
)  # fmt: skip
op("BatchMatrixDiag", "diagonal: T -> output: T", "T: type", deprecated=(14, "Use MatrixDiag."),
    shape=_matrix_diag_shape, doc="Return matrices with the input on their diagonals.",
)  # fmt: skip
op("MatrixBandPart", "input: T, num_lower: Tindex, num_upper: Tindex -> band: T", "T: type",
    "Tindex: {int32, int64} = DT_INT64", shape=unchanged_shape_with_rank_at_least(2),
    doc="Keep a central band of diagonals of matrices and set the other elements to zero.\n\nA negative count keeps "
    "the whole triangle.",
)  # fmt: skip
op("MatrixDiag", "diagonal: T -> output: T", "T: type", shape=_matrix_diag_shape,
    doc="Return matrices with the input on their diagonals.",
)  # fmt: skip
op("MatrixDiagPart", "input: T -> diagonal: T", "T: type", shape=_matrix_diag_part_shape,
    doc="Return the main diagonals of matrices.",
)  # fmt: skip
op("MatrixDiagPartV2", "input: T, k: int32, padding_value: T -> diagonal: T", "T: type", shape=_band_part_shape,
    doc="Return a band of diagonals of matrices, padded to one length.",
)  # fmt: skip
op("MatrixDiagPartV3", "input: T, k: int32, padding_value: T -> diagonal: T", "T: type",
    "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'", shape=_band_part_shape,
    doc="Return a band of diagonals of matrices, padded to one length on a selectable side.",
)  # fmt: skip
op("MatrixDiagV2", "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T -> output: T", "T: type",
    shape=_band_matrix_shape, doc="Return matrices with the given band of diagonals.",
)  # fmt: skip
op("MatrixDiagV3", "diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T -> output: T", "T: type",
    "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'", shape=_band_matrix_shape,
    doc="Return matrices with the given band of diagonals, aligned on a selectable side.",
)  # fmt: skip
op("MatrixSetDiag", "input: T, diagonal: T -> output: T", "T: type", shape=_matrix_set_diag_shape,
    doc="Replace the main diagonals of matrices.",
)  # fmt: skip
op("MatrixSetDiagV2", "input: T, diagonal: T, k: int32 -> output: T", "T: type",
    shape=unchanged_shape_with_rank_at_least(2), doc="Replace a band of diagonals of matrices.",
)  # fmt: skip
op("MatrixSetDiagV3", "input: T, diagonal: T, k: int32 -> output: T", "T: type",
    "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'",
    shape=unchanged_shape_with_rank_at_least(2),
    doc="Replace a band of diagonals of matrices, aligned on a selectable side.",
)  # fmt: skip
op("UpperBound", "sorted_inputs: T, values: T -> output: out_type", "T: type", "out_type: {int32, int64} = DT_INT32",
    shape=_search_bound_shape, doc="Return the insertion indices of values in sorted rows, after equal elements.",
)  # fmt: skip
op("LowerBound", "sorted_inputs: T, values: T -> output: out_type", "T: type", "out_type: {int32, int64} = DT_INT32",
    shape=_search_bound_shape, doc="Return the insertion indices of values in sorted rows, before equal elements.",
)  # fmt: skip
op("Select", "condition: bool, t: T, e: T -> output: T", "T: type", shape=_select_shape,
    doc="Select elements of two arrays by a condition.",
)  # fmt: skip
op("SelectV2", "condition: bool, t: T, e: T -> output: T", "T: type", shape=broadcast_inputs_shape,
    doc="Select elements of two arrays by a condition; all three broadcast.",
)  # fmt: skip
op("ToBool", "input: T -> output: bool", "T: type", shape=scalar_shape,
    doc="Test for a nonzero number, a nonempty string or a nonempty array.",
)  # fmt: skip
