"""Reductions of traced arrays with the semantics of ``ufunc.reduce``: axes, dtypes, identities, masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import index
from typing import Any, Final

import numpy as np
from numpy.exceptions import AxisError
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from cyxla.errors import DTypeError, ShapeError, UnimplementedError
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Dtype, result_type
from cyxla.numpy.tracing.results.result_layout import set_reduced_layout
from cyxla.numpy.ufuncs.apply import broadcast_to, convert_checked, to_mask, to_outputs
from cyxla.records import dataclass
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

NOT_GIVEN: Final[Any] = np._NoValue  # NumPy's default of keywords that are not given
_PROMOTED: dict[str, Dtype] = {"b": np.dtype(np.int64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}


@dataclass(frozen=True)
class Reduction:
    """Reduction of elements along axes.

    Attributes
    ----------
    opcode : str
        Opcode of the HLO instruction that combines two elements.
    pred_opcode : str
        Opcode for bools.
    start : callable
        Function from a value to the identity in its dtype.
    promotes : bool
        Whether small integers are reduced as 64-bit ones.
    allows_empty : bool
        Whether a reduction of no elements has a result.
    """

    opcode: str
    pred_opcode: str
    start: Callable[[XlaOp], XlaOp]
    promotes: bool = False
    allows_empty: bool = True


def _least(op: XlaOp) -> XlaOp:
    return _extreme(op, False, complex(-np.inf, -np.inf), values.min_value)


def _greatest(op: XlaOp) -> XlaOp:
    return _extreme(op, True, complex(np.inf, np.inf), values.max_value)


def _extreme(op: XlaOp, boolean: bool, complex_value: complex, real_value: Callable[[XlaOp], XlaOp]) -> XlaOp:
    if op.shape.dtype is ElementType.PRED:
        return values.scalar(op, boolean)
    return values.scalar(op, complex_value) if values.is_complex(op) else real_value(op)


def _constant_start(number: int) -> Callable[[XlaOp], XlaOp]:
    return lambda op: values.scalar(op, number)


def _all_ones(op: XlaOp) -> XlaOp:
    return values.scalar(op, -1 if op.shape.dtype.is_signed or op.shape.dtype is ElementType.PRED else _max_value(op))


def _max_value(op: XlaOp) -> int:
    return int(np.iinfo(values.numpy_type(op)).max)


REDUCTIONS: Final[dict[np.ufunc, Reduction]] = {
    np.add: Reduction("add", "or", _constant_start(0), promotes=True),
    np.multiply: Reduction("multiply", "and", _constant_start(1), promotes=True),
    np.maximum: Reduction("maximum", "or", _least, allows_empty=False),
    np.minimum: Reduction("minimum", "and", _greatest, allows_empty=False),
    np.logical_or: Reduction("or", "or", _constant_start(0)),
    np.logical_and: Reduction("and", "and", _constant_start(1)),
    np.bitwise_or: Reduction("or", "or", _constant_start(0)),
    np.bitwise_and: Reduction("and", "and", _all_ones),
    np.bitwise_xor: Reduction("xor", "xor", _constant_start(0)),
    np.logical_xor: Reduction("xor", "xor", _constant_start(0)),
}  # fmt: skip
_LOGICAL = (np.logical_or, np.logical_and, np.logical_xor)
_SAME_WIDTH = {4: ElementType.S32, 8: ElementType.S64}
_BITWISE = (np.bitwise_or, np.bitwise_and, np.bitwise_xor)


def known_values(value: Any) -> Any:
    """Return the values known while tracing; None for traced arrays and lists of them."""
    if isinstance(value, TracedArray):
        return value.known
    if not isinstance(value, (list, tuple)):
        return np.asarray(value)
    parts = [known_values(v) for v in value]
    return None if any(p is None for p in parts) else np.asarray(parts)


# -- axes and keywords


def reduction_axes(axis: Any, rank: int, *, of_scalars: bool = True) -> tuple[int, ...]:
    """Return the dimensions that ``axis=`` of a reduction names; all for None.

    Parameters
    ----------
    axis : int, tuple of int or None
        Value of the keyword.
    rank : int
        Rank of the array.
    of_scalars : bool, optional
        Whether arrays of rank 0 can be reduced along the axes 0 and -1, as by ufuncs.

    Raises
    ------
    AxisError
        A dimension does not exist.
    ValueError
        A dimension is named twice.
    """
    if axis is None:
        return tuple(range(rank))
    if rank == 0 and of_scalars and not isinstance(axis, (tuple, list)):
        if index(axis) in (0, -1):  # NumPy allows this axis for scalars
            return ()
        raise AxisError(index(axis), 0)
    if isinstance(axis, list):
        raise TypeError("'list' object cannot be interpreted as an integer")
    axes = axis if isinstance(axis, tuple) else (index(axis),)  # NumPy would try to iterate over a traced one
    return tuple(sorted(normalize_axis_tuple(axes, rank)))


def single_axis(axis: Any, rank: int) -> int:
    """Return the single dimension that ``axis=`` names."""
    return int(normalize_axis_index(index(axis), rank))


def keepdims_shape(sizes: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a result with ``keepdims=True``."""
    return tuple(1 if d in axes else n for d, n in enumerate(sizes))


def flag(value: Any) -> bool:
    """Return a keyword such as ``keepdims=`` as a bool; False if it is not given."""
    return False if value is NOT_GIVEN else bool(value)


# -- reductions


def reduce_op(
    ufunc: np.ufunc, op: XlaOp, axes: Sequence[int], keepdims: bool = False, *, has_initial: bool = False
) -> XlaOp:
    """Reduce a value along dimensions in its own dtype; 16-bit floats are accumulated in 32 bits.

    With `has_initial` the caller adds an initial value, and the result keeps the sign of zero.
    """
    row = REDUCTIONS[ufunc]
    accumulated = values.widened(op) if row.promotes else op
    if not axes:
        return op
    start = identity_of(ufunc, accumulated) if has_initial else row.start(accumulated)
    result = xla.reduce(accumulated, start, combiner_of(ufunc, accumulated.shape.dtype), tuple(axes))
    if keepdims:
        result = xla.reshape(result, keepdims_shape(op.shape.dims, axes))
    return result if accumulated is op else xla.convert(result, op.shape.dtype)


def identity_of(ufunc: np.ufunc, op: XlaOp) -> XlaOp:
    """Return the identity in the dtype of a value; of addition the one that keeps the sign of zero."""
    if REDUCTIONS[ufunc].opcode == "add" and (values.is_float(op) or values.is_complex(op)):
        return values.scalar(op, complex(-0.0, -0.0) if values.is_complex(op) else -0.0)
    return REDUCTIONS[ufunc].start(op)


@lru_cache(maxsize=256)
def combiner_of(ufunc: np.ufunc, dtype: ElementType) -> XlaComputation:
    """Return the computation that combines two elements of a dtype."""
    row = REDUCTIONS[ufunc]
    if not _needs_comparison(row, dtype):
        return scalar_computation(_opcode(row, dtype), dtype)
    builder = XlaBuilder(f"{row.opcode}_{dtype}")
    x, y = (xla.parameter(builder, k, Shape.array(dtype), name) for k, name in enumerate("xy"))
    return builder.build(combine(ufunc, x, y))


def combine(ufunc: np.ufunc, x: XlaOp, y: XlaOp) -> XlaOp:
    """Combine two values of one dtype and shape element by element."""
    row, dtype = REDUCTIONS[ufunc], x.shape.dtype
    if not _needs_comparison(row, dtype):
        return xla.function_of(_opcode(row, dtype))(x, y)
    first = not_less(x, y) if row.opcode == "maximum" else not_less(y, x)
    return xla.select(xla.or_(first, xla.ne(x, x)), x, y)


def _opcode(row: Reduction, dtype: ElementType) -> str:
    return row.pred_opcode if dtype is ElementType.PRED else row.opcode


def _needs_comparison(row: Reduction, dtype: ElementType) -> bool:
    return dtype.is_complex and row.opcode in ("maximum", "minimum")


def not_less(x: XlaOp, y: XlaOp) -> XlaOp:
    """Compare complex numbers by ``x >= y``, real parts first; False for nan."""
    (a, b), (c, d) = ((xla.real(v), xla.imag(v)) for v in (x, y))
    ordered = xla.and_(xla.eq(b, b), xla.eq(d, d))
    return xla.or_(xla.and_(xla.gt(a, c), ordered), xla.and_(xla.eq(a, c), xla.ge(b, d)))


def reduce(
    ufunc: np.ufunc, array: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN,
    initial: Any = NOT_GIVEN, where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Compute ``ufunc.reduce`` with its keywords.

    Raises
    ------
    UnimplementedError
        The ufunc is not in `REDUCTIONS`.
    """
    row = REDUCTIONS.get(ufunc)
    if row is None:
        raise UnimplementedError(
            f"{ufunc.__name__}.reduce cannot be traced",
            hint="use np.add, np.maximum or another reduction with an identity",
        )
    source = as_traced(array)
    mask = None if selects_all(where) else to_mask(where)
    axes = reduction_axes(axis, source.ndim)
    target = out[0] if isinstance(out, tuple) else out
    op = _convert_elements(ufunc, source, reduction_dtype(ufunc, source, dtype, target), dtype)
    if not has_start(row, initial):
        _check_not_empty(op, axes, mask is not None, ufunc)
    has_initial = initial is not NOT_GIVEN and initial is not None
    if mask is not None:
        neutral = identity_of(ufunc, op) if has_initial else row.start(op)
        op = xla.select(mask_of(mask, op.shape.dims), op, broadcast_to(neutral, op.shape.dims))
    reduced = _reduce_in_source_width(ufunc, op, axes, flag(keepdims), source, has_initial)
    if has_initial:
        reduced = combine(ufunc, initial_of(initial, reduced), reduced)
    result = reduction_to_out(reduced, target, ufunc.__name__)
    if target is None and not source.contiguous:
        set_reduced_layout(result, source.memory, axes)
    return result


def has_start(row: Reduction, initial: Any) -> bool:
    """Return True if a reduction has an initial value: the identity or the caller's; None is neither."""
    return initial is not None and (row.allows_empty or initial is not NOT_GIVEN)


def _reduce_in_source_width(
    ufunc: np.ufunc, op: XlaOp, axes: Sequence[int], keepdims: bool, source: TracedArray, has_initial: bool
) -> XlaOp:  # fmt: skip
    """Reduce; bools whose reduction is not over the last dimension are reduced in the width of their source."""
    width = _SAME_WIDTH.get(source.itemsize) if ufunc in _LOGICAL else None
    if width is None or not axes or source.ndim - 1 in axes:
        return reduce_op(ufunc, op, axes, keepdims, has_initial=has_initial)
    result = reduce_op(ufunc, xla.convert(op, width), axes, keepdims)
    return xla.ne(result, values.zeros_like(result))


def reduction_to_out(result: XlaOp, out: Any, name: str) -> Any:
    """Return a result, written to ``out=`` of the same shape and any dtype if given.

    Raises
    ------
    ShapeError
        The shape of ``out=`` differs.
    """
    target = out[0] if isinstance(out, tuple) else out
    if target is not None and tuple(target.shape) != result.shape.dims:
        raise ShapeError(_shape_message(name, target.shape, result.shape.dims))
    return to_outputs([TracedArray(result)], target, True, "unsafe", name)


_REDUCTION_NAMES = {
    "mean": "add",
    "var": "add",
    "std": "add",
    "median": "add",
    "any": "logical_or",
    "all": "logical_and",
}


def _shape_message(name: str, out_shape: Sequence[int], result_shape: Sequence[int]) -> str:
    """Return the message for an ``out=`` of another shape, NumPy's where it has one."""
    if name in ("argmax", "argmin"):
        return f"output array does not match result of np.{name}."
    if len(out_shape) == len(result_shape):
        return f"{name}: out= has shape {tuple(out_shape)}, but the result has shape {tuple(result_shape)}"
    return (
        f"output parameter for reduction operation {_REDUCTION_NAMES.get(name, name)} has the wrong number of "
        f"dimensions: Found {len(out_shape)} but expected {len(result_shape)}"
    )


def _convert_elements(ufunc: np.ufunc, array: TracedArray, dtype: Dtype, requested: Any) -> XlaOp:
    """Convert the elements to the dtype of the reduction."""
    if ufunc in _LOGICAL:
        if requested is not None and dtype.kind != "b":
            raise DTypeError(f"{ufunc.__name__} returns bools, not {dtype}")
        return convert(value_of(array), np.dtype(bool))
    if ufunc in _BITWISE and dtype.kind not in "biu":
        raise DTypeError(f"ufunc '{ufunc.__name__}' is not supported for the type {dtype}")
    return convert(value_of(array), dtype)


def reduction_dtype(ufunc: np.ufunc, array: TracedArray, dtype: Any, out: Any) -> Dtype:
    """Return NumPy's dtype of a reduction: the requested one, that of ``out=``, or the array's, promoted."""
    if dtype is not None:
        requested: Dtype = np.dtype(dtype)
        return requested
    if out is not None:
        try:
            return result_type(array.dtype, out.dtype)
        except DTypeError:  # NumPy has no common dtype of bfloat16 and most others
            return array.dtype
    promoted = _PROMOTED.get(array.dtype.kind) if REDUCTIONS[ufunc].promotes else None
    return array.dtype if promoted is None or array.itemsize > promoted.itemsize else promoted


def selects_all(where: Any) -> bool:
    """Return True if ``where=`` selects all elements."""
    return where is NOT_GIVEN or where is True


def mask_of(where: Any, sizes: Sequence[int]) -> XlaOp:
    """Broadcast ``where=`` to the shape of the array as bools."""
    mask = value_of(to_mask(where))
    if len(mask.shape.dims) > len(sizes) or np.broadcast_shapes(mask.shape.dims, sizes) != tuple(sizes):
        raise ShapeError(
            f"where= of shape {mask.shape.dims} cannot be broadcast to the shape {tuple(sizes)} of the array"
        )
    return broadcast_to(mask, sizes)


def _check_not_empty(op: XlaOp, axes: Sequence[int], masked: bool, ufunc: np.ufunc) -> None:
    """Refuse reductions that may have no elements and have no identity."""
    if masked:
        raise ShapeError(f"{_no_identity(ufunc)}, so where= needs initial=")
    if not all(op.shape.dims[d] for d in axes):
        raise ShapeError(f"zero-size array to {_no_identity(ufunc)}")


def _no_identity(ufunc: np.ufunc) -> str:
    return f"reduction operation {ufunc.__name__} which has no identity"


def initial_of(initial: Any, results: XlaOp) -> XlaOp:
    """Broadcast ``initial=`` to the results in their dtype; NumPy stores it in an array."""
    dtype = values.numpy_type(results)
    if known_values(initial) is not None:
        cell = np.zeros((), dtype)
        cell[()] = initial if np.ndim(initial) == 0 else _raise_sequence_error()
        start = xla.constant(results.builder, cell, results.shape.dtype)
    else:
        initial_array = as_traced(initial)
        start = convert_checked(initial_array, dtype) if initial_array.ndim == 0 else _raise_sequence_error()
    return broadcast_to(start, results.shape.dims)


def _raise_sequence_error() -> Any:
    raise ValueError("setting an array element with a sequence.")
