"""Methods of ufuncs: reduce, accumulate, reduceat, outer, at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce as _fold
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, OutOfRangeError, ShapeError, TraceError, UnimplementedError
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Dtype, loop_types
from cyxla.numpy.tracing.results.result_layout import set_order
from cyxla.numpy.tracing.trace import Trace, tracing
from cyxla.numpy.ufunc_methods.cumulative import cumulative
from cyxla.numpy.ufunc_methods.reduce import (
    NOT_GIVEN,
    REDUCTIONS,
    flag,
    keepdims_shape,
    mask_of,
    reduce_op,
    reduction_axes,
)
from cyxla.numpy.ufunc_methods.reduce import reduce as reduce_by_opcode
from cyxla.numpy.ufuncs.apply import broadcast_to, call, convert_checked, emitter_of, to_outputs
from cyxla.numpy.ufuncs.loop_helpers import Emit
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla

# Associative and commutative, without an HLO opcode: reduced as a tree.
_REORDERABLE = (np.logaddexp, np.logaddexp2, np.hypot, np.gcd, np.fmax, np.fmin)
_OPCODES: dict[np.ufunc, str] = {
    np.add: "add", np.multiply: "multiply", np.maximum: "maximum", np.minimum: "minimum", np.logical_or: "or",
    np.logical_and: "and",
}  # fmt: skip
_MAX_UNROLLED = 16  # greatest number of rows for which the loop of a reduction is unrolled
_MAX_SEGMENTS = 1024


def _binary_emitter(ufunc: np.ufunc, method: str) -> Emit:
    """Return the loop of a binary ufunc with one result.

    Raises
    ------
    ValueError
        The ufunc is not binary or has several results.
    """
    if ufunc.nin != 2 or ufunc.nout != 1:
        raise ValueError(f"{method} only supported for binary functions")
    return emitter_of(ufunc)


def _element_type(ufunc: np.ufunc, array: TracedArray, dtype: Any, out: Any = None) -> Dtype:
    """Return the dtype of a reduction, which ``out=`` influences.

    Raises
    ------
    DTypeError
        There is no loop whose operands and result have one dtype.
    """
    options: dict[str, Any] = {} if dtype is None else {"signature": (np.dtype(dtype), None, None)}
    out_dtype = None if dtype is not None or out is None else out.dtype
    try:
        types = ufunc.resolve_dtypes((out_dtype, array.dtype, None), reduction=True, casting="unsafe", **options)
    except TypeError as error:
        raise DTypeError(str(error)) from None
    if types[0] != types[1] or types[1] != types[2]:
        raise TypeError(f"the resolved dtypes are not compatible with {ufunc.__name__}.reduce. Resolved {types}")
    return types[-1]


def _single(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


# -- reduce


def reduce(
    ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False,
    initial: Any = NOT_GIVEN, where: Any = True,
) -> Any:  # fmt: skip
    """Reduce elements along axes by a ufunc."""
    emit = _binary_emitter(ufunc, "reduce")
    if ufunc in REDUCTIONS:
        return reduce_by_opcode(ufunc, array, axis, dtype, out, keepdims, initial, where)
    source = as_traced(array)
    axes = reduction_axes(axis, source.ndim)
    element_dtype = _element_type(ufunc, source, dtype, _single(out))
    _check_reduction(ufunc, source, axes, initial, where)
    op = _merge_axes(convert(value_of(source), element_dtype), axes)
    start = _start(ufunc, initial, element_dtype)
    if where is not True:
        mask = _merge_axes(mask_of(where, source.shape), axes)
        result = _reduce_rows_where(emit, op, mask, _number(start, element_dtype))
    else:
        result = _reduce_rows(ufunc, emit, op, [] if start is None else [_number(start, element_dtype)])
    remaining = [n for d, n in enumerate(source.shape) if d not in axes]
    result = broadcast_to(result, remaining)
    if flag(keepdims):
        result = xla.reshape(result, keepdims_shape(source.shape, axes))
    return to_outputs([TracedArray(result)], _single(out), True, "unsafe", ufunc.__name__)


def _start(ufunc: np.ufunc, initial: Any, dtype: Dtype) -> Any:
    """Return the initial value of a reduction; None for none."""
    if initial is NOT_GIVEN:
        return ufunc.identity
    return initial


def _number(value: Any, dtype: Dtype) -> XlaOp:
    """Return an initial value as a constant; a known one is checked as by storing it in an array."""
    if is_traced(value):
        return convert_checked(as_traced(value), dtype)
    cell = np.empty((), dtype)
    cell[()] = value
    return _trace.require_current().constant(cell)


def _check_reduction(ufunc: np.ufunc, source: TracedArray, axes: Sequence[int], initial: Any, where: Any) -> None:
    name, has_initial = f"reduction operation '{ufunc.__name__}'", initial not in (NOT_GIVEN, None)
    if len(axes) > 1 and ufunc not in _REORDERABLE:
        raise ValueError(f"{name} is not reorderable, so at most one axis may be specified")
    if has_initial or (ufunc.identity is not None and initial is NOT_GIVEN):
        return
    if where is not True:
        raise ValueError(f"{name} does not have an identity, so to use a where mask one has to specify 'initial'")
    remaining = prod(n for d, n in enumerate(source.shape) if d not in axes)
    if remaining and not all(source.shape[d] for d in axes):
        raise ShapeError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")


def _merge_axes(op: XlaOp, axes: Sequence[int]) -> XlaOp:
    """Merge the dimensions to be reduced into one, the first."""
    sizes = op.shape.dims
    remaining = [d for d in range(len(sizes)) if d not in axes]
    if axes != tuple(range(len(axes))):
        op = xla.transpose(op, [*axes, *remaining])
    return xla.reshape(op, (prod(sizes[d] for d in axes), *[sizes[d] for d in remaining]))


def _row(op: XlaOp, position: int) -> XlaOp:
    """Return the elements at an index of the first dimension."""
    return xla.reshape(xla.slice_in_dim(op, position, position + 1), op.shape.dims[1:])


def _reduce_rows(ufunc: np.ufunc, emit: Emit, op: XlaOp, initial: list[XlaOp]) -> XlaOp:
    if ufunc in _REORDERABLE and op.shape.dims[0]:
        return _combine_broadcast(emit, initial[0], _reduce_tree(emit, op)) if initial else _reduce_tree(emit, op)
    if op.shape.dims[0] > _MAX_UNROLLED:
        start, rest = (initial[0], op) if initial else (_row(op, 0), _rows_from(op, 1))
        return _reduce_in_order(emit, broadcast_to(start, op.shape.dims[1:]), [rest])[0]
    rows = [_row(op, k) for k in range(op.shape.dims[0])]
    return _fold(lambda x, y: _combine_broadcast(emit, x, y), [*initial, *rows])


def _rows_from(op: XlaOp, position: int) -> XlaOp:
    return xla.slice_in_dim(op, position, op.shape.dims[0])


def _reduce_in_order(emit: Emit, start: XlaOp, rows: Sequence[XlaOp]) -> tuple[XlaOp, XlaOp]:
    """Reduce rows in order by a loop; return the last result and all partial ones.

    A second array of rows is a mask of the elements that take part.
    """
    from cyxla.numpy.control import scan

    def step(before: TracedArray, parts: Sequence[TracedArray]) -> tuple[TracedArray, TracedArray]:
        combined = emit(value_of(before), value_of(parts[0]))
        if len(parts) > 1:
            combined = xla.select(value_of(parts[1]), combined, value_of(before))
        combined_array = TracedArray(combined)
        return combined_array, combined_array

    final, partials = scan(step, TracedArray(start), [TracedArray(r) for r in rows])
    return value_of(final), value_of(partials)


def _combine_broadcast(emit: Emit, x: XlaOp, y: XlaOp) -> XlaOp:
    combined: XlaOp = emit(broadcast_to(x, y.shape.dims), y)
    return combined


def _reduce_tree(emit: Emit, op: XlaOp) -> XlaOp:
    """Reduce along the first dimension as a tree, by combining halves."""
    while (count := op.shape.dims[0]) > 1:
        half = count // 2
        combined: XlaOp = emit(xla.slice_in_dim(op, 0, half), xla.slice_in_dim(op, half, 2 * half))
        op = combined if count % 2 == 0 else xla.concatenate([combined, xla.slice_in_dim(op, count - 1, count)], 0)
    return _row(op, 0)


def _reduce_rows_where(emit: Emit, op: XlaOp, mask: XlaOp, start: XlaOp) -> XlaOp:
    accumulator = broadcast_to(start, op.shape.dims[1:])
    if op.shape.dims[0] > _MAX_UNROLLED:
        return _reduce_in_order(emit, accumulator, [op, mask])[0]
    for k in range(op.shape.dims[0]):
        accumulator = xla.select(_row(mask, k), emit(accumulator, _row(op, k)), accumulator)
    return accumulator


# -- accumulate


def _one_axis(axis: Any, source: TracedArray, method: str) -> int:
    """Return the single axis of a method that does not support several.

    Raises
    ------
    TypeError
        The array has rank 0.
    ValueError
        Several axes are given.
    """
    axes = reduction_axes(axis, source.ndim)
    if source.ndim == 0:
        raise TypeError(f"cannot {method} on a scalar")
    if len(axes) != 1:
        raise ValueError(f"{method} does not allow multiple axes")
    return axes[0]


def accumulate(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    """Compute inclusive prefixes along an axis."""
    emit = _binary_emitter(ufunc, "accumulate")
    source = as_traced(array)
    dimension = _one_axis(axis, source, "accumulate")
    op = convert(value_of(source), _element_type(ufunc, source, dtype, _single(out)))
    result = TracedArray(_prefixes(ufunc, emit, op, dimension))
    set_order(result, "K", [source])
    return to_outputs([result], _single(out), True, "unsafe", ufunc.__name__)


def _prefixes(ufunc: np.ufunc, emit: Emit, op: XlaOp, axis: int) -> XlaOp:
    opcode, complex_ = _OPCODES.get(ufunc), op.shape.dtype.is_complex
    if opcode is not None and not (complex_ and opcode in ("maximum", "minimum")):
        pred = op.shape.dtype is ElementType.PRED
        names = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and"} if pred else {}
        return cumulative(op, names.get(opcode, opcode), axis)
    if ufunc in _REORDERABLE or ufunc in REDUCTIONS:
        return _prefixes_by_doubling(emit, op, axis)
    count = op.shape.dims[axis]
    if count > _MAX_UNROLLED:
        return _prefixes_in_order(emit, op, axis)
    parts = [xla.slice_in_dim(op, k, k + 1, dimension=axis) for k in range(count)]
    for k in range(1, count):
        parts[k] = emit(parts[k - 1], parts[k])
    return xla.concatenate(parts, axis) if parts else op


def _prefixes_in_order(emit: Emit, op: XlaOp, axis: int) -> XlaOp:
    order = [axis, *(d for d in range(op.shape.rank) if d != axis)]
    rows = xla.transpose(op, order)
    partials = _reduce_in_order(emit, _row(rows, 0), [_rows_from(rows, 1)])[1]
    prefixes = xla.concatenate([xla.slice_in_dim(rows, 0, 1), partials], 0)
    return xla.transpose(prefixes, [order.index(d) for d in range(op.shape.rank)])


def _prefixes_by_doubling(emit: Emit, op: XlaOp, axis: int) -> XlaOp:
    """Compute prefixes by doubling: combine each element with the one 1, 2, 4 .. before it."""
    count, distance = op.shape.dims[axis], 1
    while distance < count:
        head = xla.slice_in_dim(op, 0, distance, dimension=axis)
        before, after = (xla.slice_in_dim(op, low, low + count - distance, dimension=axis) for low in (0, distance))
        op = xla.concatenate([head, emit(before, after)], axis)
        distance *= 2
    return op


# -- reduceat


def reduceat(ufunc: np.ufunc, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    """Reduce segments between successive indices; a segment whose end is not after its start is a single element.

    Raises
    ------
    UnimplementedError
        The indices are traced, and the ufunc is not associative.
    """
    emit = _binary_emitter(ufunc, "reduceat")
    source = as_traced(array)
    if isinstance(indices, TracedArray) and indices.known is not None:
        indices = indices.known
    if is_traced(indices):
        if ufunc in REDUCTIONS or ufunc in _REORDERABLE:
            return hooks.sized_ufunc(ufunc, "reduceat", (array, indices), {"axis": axis, "dtype": dtype, "out": out})
        raise UnimplementedError(
            f"{ufunc.__name__}.reduceat with traced indices cannot be traced", where=_trace.user_line(),
            hint="make the indices static, or loop over the segments",
        )  # fmt: skip
    positions = np.asarray(indices).astype(np.intp)
    if positions.ndim != 1:
        raise ValueError(f"the indices of {ufunc.__name__}.reduceat have {positions.ndim} dimensions, not 1")
    dimension = _one_axis(axis, source, "reduceat")
    count = source.shape[dimension]
    for k in positions.tolist():
        if not 0 <= k < count:
            raise OutOfRangeError(f"index {k} out-of-bounds in {ufunc.__name__}.reduceat [0, {count})")
    op = convert(value_of(source), _element_type(ufunc, source, dtype, _single(out)))
    result = _segments(ufunc, emit, op, [*positions.tolist(), count], dimension)
    return to_outputs([TracedArray(result)], _single(out), True, "unsafe", ufunc.__name__)


def _segments(ufunc: np.ufunc, emit: Emit, op: XlaOp, bounds: Sequence[int], axis: int) -> XlaOp:
    if len(bounds) - 1 > _MAX_SEGMENTS:
        raise UnimplementedError(
            f"{ufunc.__name__}.reduceat of more than {_MAX_SEGMENTS} segments cannot be traced",
            hint="use np.add.at with an index of the segment for each element",
        )
    if len(bounds) == 1:
        return xla.slice_in_dim(op, 0, 0, dimension=axis)
    parts = []
    for low, high in pairwise(bounds):
        part = xla.slice_in_dim(op, low, max(high, low + 1), dimension=axis)
        parts.append(_reduce_keepdims(ufunc, emit, part, axis) if high > low + 1 else part)
    return xla.concatenate(parts, axis)


def _reduce_keepdims(ufunc: np.ufunc, emit: Emit, op: XlaOp, axis: int) -> XlaOp:
    """Reduce along a dimension, which stays with size 1."""
    if ufunc in REDUCTIONS:
        return reduce_op(ufunc, op, (axis,), True, has_initial=True)  # starting from its first element
    combined = _reduce_rows(ufunc, emit, _merge_axes(op, (axis,)), [])
    return xla.reshape(combined, keepdims_shape(op.shape.dims, (axis,)))


# -- outer and at


def outer(ufunc: np.ufunc, a: Any, b: Any, **kwargs: Any) -> Any:
    """Apply a ufunc to all pairs of elements of two arrays."""
    if ufunc.nin != 2:
        raise ValueError("outer product only supported for binary functions")
    first, second = as_traced(a), as_traced(b)
    new_axes = (None,) * second.ndim
    expanded = TracedArray(xla.reshape(value_of(first), (*first.shape, *[1] * second.ndim)))
    expanded.set_memory(first.memory[(..., *new_axes)])
    return call(ufunc, (expanded, TracedArray(value_of(second), memory=second.memory)), **kwargs)


def at(ufunc: np.ufunc, a: Any, indices: Any, b: Any = NOT_GIVEN) -> None:
    """Update elements of an array in place; repeated indices are applied repeatedly.

    Raises
    ------
    TraceError
        The array is a NumPy array.
    """
    from cyxla.numpy.indexing.access import scatter_at

    if not isinstance(a, TracedArray):
        raise TraceError(
            f"{ufunc.__name__}.at cannot write traced values to a NumPy array", where=_trace.user_line(),
            hint="write to a traced array, such as np.zeros_like(x) or x.copy() of a traced x",
        )  # fmt: skip
    if ufunc.nout != 1 or ufunc.nin > 2:
        raise ValueError("Only unary and binary ufuncs supported at this time")
    if (b is NOT_GIVEN) != (ufunc.nin == 1):
        raise ValueError("second operand needed for ufunc" if ufunc.nin == 2 else "second operand provided when not")
    value = TracedArray(value_of(as_traced(False if b is NOT_GIVEN else b)))
    types = loop_types(ufunc, (a.kind, value.kind)[: ufunc.nin])
    if ufunc.nin == 2 and types[0] != types[1]:
        raise UnimplementedError(
            f"{ufunc.__name__}.at of {a.dtype} with {value.dtype} cannot be traced", where=_trace.user_line(),
            hint=f"use x[i] = np.{ufunc.__name__}(x[i], y) if no index repeats",
        )  # fmt: skip
    promoted = a if types[0] == a.dtype else TracedArray(convert(value_of(a), types[0]))
    operand = TracedArray(convert(value_of(value), types[0]))
    combiner = _combiner(ufunc, promoted.aval.dtype, a.dtype)
    if _needs_loop(combiner):
        _update_in_order(promoted, indices, operand, combiner)
    else:
        scatter_at(promoted, indices, operand, combiner)
    if promoted is not a:
        result = TracedArray(convert(value_of(promoted), a.dtype))
        if not np.can_cast(a.dtype, types[0]) or (a.dtype.itemsize == 8 and a.dtype.kind in "iu"):
            # elements that are not updated keep their values, which the two conversions may change
            changed = as_traced(np.broadcast_to(np.False_, a.shape)).copy()
            changed[indices] = True
            where: Any = np.where  # dispatches to this package
            result = where(changed, result, a)
        a.overwrite(value_of(result))


def _combiner(ufunc: np.ufunc, dtype: ElementType, array_dtype: Dtype) -> str | XlaComputation:
    """Return the combiner of an element and a value; the result is representable in the array's dtype."""
    opcode = _OPCODES.get(ufunc)
    if opcode in ("add", "multiply") and dtype is not ElementType.PRED and dtype.numpy_dtype == array_dtype:
        return str(opcode)
    trace = Trace(f"{ufunc.__name__}_at")
    with tracing(trace):
        element, value = (trace.parameter(Shape.array(dtype), name) for name in ("element", "value"))
        combined = convert(emitter_of(ufunc)(*(element, value)[: ufunc.nin]), array_dtype)
        combined = xla.convert(combined, dtype) if combined.shape.dtype is not dtype else combined
    if trace.failures:
        raise UnimplementedError(
            f"{ufunc.__name__}.at of {dtype} cannot be traced: it would have to check its operands",
            where=_trace.user_line(), hint=f"use x[i] = np.{ufunc.__name__}(x[i], y) if no index repeats",
        )  # fmt: skip
    return trace.build(combined)


#: Opcodes that no backend supports between reading an element and writing it.
_LOOP_OPCODES = frozenset({"bitcast-convert", "while"})


def _needs_loop(combiner: str | XlaComputation) -> bool:
    if isinstance(combiner, str):
        return False
    return any(i.opcode in _LOOP_OPCODES for c in combiner.module().computations.values() for i in c.instructions)


def _update_in_order(array: TracedArray, indices: Any, operand: TracedArray, combiner: Any) -> None:
    """Update the elements named by indices in order."""
    from cyxla.numpy.control.loops import fori_loop
    from cyxla.numpy.indexing.access import get

    flat_positions: Any = np.arange(array.size).reshape(array.shape)
    positions = get(as_traced(flat_positions), indices)
    flat_indices = np.ravel(positions)
    values: Any = np.ravel(TracedArray(broadcast_to(value_of(operand), positions.shape)))

    def step(k: Any, flat: Any) -> Any:
        position = flat_indices[k]
        operands = [value_of(flat[position]), value_of(values[k])]
        return flat.at[position].set(TracedArray(xla.call(operands[0].builder, combiner, operands)))

    if flat_indices.size:
        result = fori_loop(0, flat_indices.size, step, np.ravel(array))
        array.overwrite(xla.reshape(value_of(result), array.shape))


METHODS: dict[str, Callable[..., Any]] = {
    "reduce": reduce, "accumulate": accumulate, "reduceat": reduceat, "outer": outer, "at": at,
}  # fmt: skip
