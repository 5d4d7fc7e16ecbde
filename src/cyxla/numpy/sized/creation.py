"""Creation of arrays whose size is a traced number with known bounds."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import ShapeError
from cyxla.numpy.functions.creation import REQUIREMENTS
from cyxla.numpy.indexing.ranges import range_of
from cyxla.numpy.sized.contiguity import in_order
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, TooLargeError, as_size, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.result_layout import order_letter, set_order
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.ufuncs.apply import broadcast_to, require_in_range

_np: Any = np  # its functions dispatch to this package

GREATEST_BOUND = 1 << 24  # greatest bound of a dimension that follows from the range of a number: 128 MiB of float64
_BOUND_HINT = "make the argument static; or bound it: np.minimum(n, 1000); sizes and counts of arrays have bounds"


def bounded_size(value: Any) -> TracedArray:
    """Return a traced integer as a size; runs in which it is negative fail.

    Raises
    ------
    TraceError
        No bound is known, or it is too large.
    """
    number = as_traced(value)
    if number.ndim or number.dtype.kind not in "iu":
        number.__index__()
    op = convert(value_of(number), np.dtype(np.int64))
    low, high = range_of(op)
    if high > GREATEST_BOUND:
        number._raise_no_value("be used as an index or a size", _BOUND_HINT)
    if low < 0:
        where, trace = user_line(), require_current()
        failed = value_of(_np.less(TracedArray(op), 0))
        trace.fail_if(failed, op, lambda n: ShapeError("negative dimensions are not allowed", where=where))
    return as_size(TracedArray(op), max(high, 0))


def bound_of(size: TracedArray) -> int:
    """Return the bound of a size."""
    return max(range_of(value_of(size))[1], 0)


def filled_shape(shape: Any, value: Any, dtype: Any, order: Any = "C") -> Any:
    """Return an array filled with a value, of a shape of which some sizes are traced."""
    sizes = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    counts = {d: bounded_size(n) for d, n in enumerate(sizes) if is_traced(n)}
    padded = tuple([bound_of(counts[d]) if d in counts else index(n) for d, n in enumerate(sizes)])
    if prod(padded) > GREATEST_BOUND:
        raise TooLargeError(
            f"an array of run-time size with bounds {padded} is too large", where=user_line(), hint=_BOUND_HINT
        )
    if dtype is not None:
        require_in_range(value, np.dtype(dtype))
    array = as_traced(value) if dtype is None else as_traced(value, dtype)
    if isinstance(value, SizedArray) or array.ndim:
        raise_unsupported("be filled by an array", "use np.zeros and an assignment")
    elements = TracedArray(broadcast_to(value_of(array), padded), rank0=Rank0.ARRAY)
    set_order(elements, order, [])
    return SizedArray(elements, counts)


def _zeros(shape: Any, dtype: Any = float, order: str = "C", **options: Any) -> Any:
    return filled_shape(shape, np.zeros((), dtype), None, order)


def _ones(shape: Any, dtype: Any = None, order: str = "C", **options: Any) -> Any:
    return filled_shape(shape, np.ones((), float if dtype is None else dtype), None, order)


def _full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **options: Any) -> Any:
    value = fill_value if isinstance(fill_value, TracedArray) else np.asarray(fill_value)
    return filled_shape(shape, value, dtype, order)


def _arange(start: Any = None, stop: Any = None, step: Any = 1, dtype: Any = None, **options: Any) -> Any:
    """Return evenly spaced integers between traced limits."""
    start, stop = (0, start) if stop is None else (start, stop)
    step = 1 if step is None else step
    kinds = [v.kind if isinstance(v, TracedArray) else np.asarray(v).dtype for v in (start, stop, step)]
    if is_traced(step) or any(np.dtype(k if k is not int else np.int64).kind not in "iub" for k in kinds):
        for value in filter(is_traced, (start, stop, step)):
            value.__index__()  # names the arguments that have to be static
    low, high, step = (v if is_traced(v) else index(v) for v in (start, stop, step))
    if step == 0:
        raise ZeroDivisionError("division by zero")
    first: Any = as_traced(low, np.int64)
    last: Any = as_traced(high, np.int64)
    is_count = step == 1 and not is_traced(low) and low == 0 and range_of(value_of(last))[0] >= 0
    distance: Any = last - first if step > 0 else first - last
    count = bounded_size(high if is_count else _np.maximum((distance + (abs(step) - 1)) // abs(step), 0))
    found: Any = np.result_type(*[np.int64 if k is int else k for k in kinds]) if dtype is None else np.dtype(dtype)
    numbers = np.arange(bound_of(count)) * step
    elements: Any = as_traced(numbers) if is_count else numbers + first
    return SizedArray(TracedArray(convert(value_of(elements), found)), {0: count})


def arange(size: Any) -> SizedArray:
    """Return the integers below a traced size."""
    numbers: SizedArray = _arange(size)
    return numbers


def _tri(n: Any, m: Any = None, k: Any = 0, dtype: Any = float, **options: Any) -> Any:
    """Return a lower triangle of ones."""
    rows, columns = (arange(size) if is_traced(size) else np.arange(size) for size in (n, n if m is None else m))
    return (rows[:, None] >= columns - k).astype(dtype)


def _eye(n: Any, m: Any = None, k: Any = 0, dtype: Any = float, order: str = "C", **options: Any) -> Any:
    """Return a matrix of ones on a diagonal."""
    sizes = [n, n if m is None else m]
    if any(not is_traced(size) and size < 0 for size in sizes):
        raise ValueError("negative dimensions are not allowed")
    rows, columns = (arange(bounded_size(size)) if is_traced(size) else np.arange(size) for size in sizes)
    return _np.copy((rows[:, None] == columns - k).astype(dtype), order)


def _identity(n: Any, dtype: Any = None, **options: Any) -> Any:
    return _eye(n, dtype=float if dtype is None else dtype)


def _linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, **options: Any,
) -> Any:  # fmt: skip
    """Return a traced number of evenly spaced numbers."""
    if retstep or np.ndim(start) or np.ndim(stop) or not is_traced(num):
        raise_unsupported("be made by np.linspace with retstep= or between arrays", "multiply np.arange by a step")
    count: Any = bounded_size(num)
    start, stop = (_np.multiply(v, 1.0) for v in (start, stop))
    steps: Any = _np.maximum(count - 1 if endpoint else count, 1)
    delta: Any = stop - start
    numbers: Any = arange(count)
    result = numbers / steps * delta + start
    if endpoint:
        result = _np.where(_np.logical_and(numbers == count - 1, count > 1), stop, result)
    return result.astype(np.result_type(start.dtype, stop.dtype, np.float64) if dtype is None else dtype)


def _indices(dimensions: Any, dtype: Any = int, sparse: bool = False, **options: Any) -> Any:
    """Return the indices of a grid."""
    sizes, rank = list(dimensions), len(dimensions)
    lines = [(arange(n) if is_traced(n) else np.arange(n)).astype(dtype) for n in sizes]
    lines = [x[tuple([slice(None) if d == k else None for d in range(rank)])] for k, x in enumerate(lines)]
    if sparse:
        return tuple(lines)
    return _np.stack([x + filled_shape(sizes, np.zeros((), dtype), None) for x in lines])


#: Functions that make arrays from traced sizes, by NumPy's function; those of `windows` come on top.
CREATION: dict[str, Callable[..., Any]] = {
    "zeros": _zeros, "ones": _ones, "empty": _zeros, "full": _full, "arange": _arange, "tri": _tri, "eye": _eye,
    "identity": _identity, "linspace": _linspace, "indices": _indices,
}  # fmt: skip


@sized(np.zeros_like, np.ones_like, np.empty_like, np.full_like)
def like(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Create an array of the same shape."""
    name = "a" if "a" in arguments else "prototype"
    array = arguments[name]
    if arguments.get("shape") is not None or not isinstance(array, SizedArray):
        raise_unsupported(f"be passed to np.{func.__name__} with shape= or as fill_value=")
    if isinstance(arguments.get("fill_value"), SizedArray) or np.ndim(arguments.get("fill_value", 0)):
        filled = array.astype(arguments.get("dtype") or array.dtype).copy(order_letter(arguments.get("order")))
        filled[...] = arguments["fill_value"]
        return filled
    return array.like(call(func, {**arguments, name: array.padded}))


@sized(np.copy)
def copy(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Copy an array."""
    return arguments["a"].copy(arguments.get("order", "K"))


_ORDERS = {"ascontiguousarray": "C", "asfortranarray": "F"}


@sized(np.asarray, np.array, np.asanyarray, np.ascontiguousarray, np.asarray_chkfinite, np.require, np.asfortranarray)
def asarray(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Convert an array."""
    array = _stacked(arguments.get("a", arguments.get("object")))
    dtype = arguments.get("dtype")
    if arguments.get("ndmin", 0) > array.ndim:
        raise_unsupported("get more dimensions by ndmin=", "index it: x[None]")
    if func.__name__ == "asarray_chkfinite":
        raise_unsupported_check()
    copies = func.__name__ == "array" and arguments.get("copy", True)
    order = _ORDERS.get(func.__name__) or order_letter(arguments.get("order"))
    if func.__name__ == "require":
        order, copies = _requirements(arguments.get("requirements"))
    if dtype is not None and array.dtype != np.dtype(dtype):
        return array.astype(dtype, order=order)
    return array.copy(order) if copies else in_order(array, order)


def _requirements(names: Any) -> tuple[str, bool]:
    """Return the order that `np.require` asks for, and whether the result owns its memory."""
    flags = {REQUIREMENTS[str(name).upper()] for name in names or ()}
    if {"C", "F"} <= flags:
        raise ValueError('Cannot specify both "C" and "F" order')
    if "O" in flags:
        raise_unsupported("be passed to np.require with requirements='O'", "copy it")
    return next(iter(flags & {"C", "F"}), "K"), False


def _stacked(value: Any) -> Any:
    """Return an array in the place of a list of arrays of equal sizes, or of such lists."""
    return _np.stack([_stacked(v) for v in value]) if isinstance(value, (list, tuple)) else value


def raise_unsupported_check() -> None:
    """Raise the error of a check of all elements."""
    raise_unsupported("be checked by np.asarray_chkfinite", "use np.isfinite(x).all()")


@sized(np.astype)
def astype(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Convert to another dtype."""
    return arguments["x"].astype(arguments["dtype"], copy=arguments.get("copy", True))
