"""Creation of arrays."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.functions.movement import moveaxis, reshape_row_major
from cyxla.numpy.indexing.access import broadcast_value
from cyxla.numpy.indexing.bounds import fail_where
from cyxla.numpy.indexing.stored_numbers import require_storable
from cyxla.numpy.tracing.arrays.deferred_array import DeferredArray, has_element_type
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.layout_reads import note_sharing
from cyxla.numpy.tracing.arrays.memory_layout import column_major
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, is_traced, value_of
from cyxla.numpy.tracing.registry import ALTERNATIVES, implements
from cyxla.numpy.tracing.results.promotion import common_kind, inexact
from cyxla.numpy.tracing.results.result_layout import order_letter, set_order
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.tracing.user_program.texts import Field, TracedText
from cyxla.numpy.ufuncs.apply import broadcast_to, require_in_range
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

Array = TracedArray
#: Letters of the requirements of `np.require`.
REQUIREMENTS = {
    "C": "C", "C_CONTIGUOUS": "C", "CONTIGUOUS": "C", "F": "F", "F_CONTIGUOUS": "F", "FORTRAN": "F", "A": "A",
    "ALIGNED": "A", "W": "W", "WRITEABLE": "W", "O": "O", "OWNDATA": "O", "E": "E", "ENSUREARRAY": "E",
}  # fmt: skip


def sizes_of(shape: Any) -> tuple[int, ...]:
    """Convert a shape to a tuple: a number or a sequence of numbers.

    Raises
    ------
    ValueError
        A size is negative.
    """
    sizes = tuple(n.__index__() for n in shape) if hasattr(shape, "__iter__") else (shape.__index__(),)
    if any(n < 0 for n in sizes):
        raise ValueError("negative dimensions are not allowed")
    return sizes


def _like(create: Callable[..., Any], a: Any, *fill: Any, dtype: Any, shape: Any, order: Any) -> Any:
    """Return what NumPy's function creates for an array of this layout."""
    sizes = None if shape is None else sizes_of(shape)
    result = create(as_traced(a).memory, *fill, dtype=dtype, order=order_letter(order), shape=sizes)
    return result if result.dtype.hasobject or result.dtype.kind in "SUMm" else KnownArray(result)


@implements(np.zeros_like)
def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    """Return zeros of the shape of an array."""
    return _like(np.zeros_like, a, dtype=dtype, shape=shape, order=order)


@implements(np.ones_like)
def ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    """Return ones of the shape of an array."""
    return _like(np.ones_like, a, dtype=dtype, shape=shape, order=order)


@implements(np.empty_like)
def empty_like(
    prototype: Any, /, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
    device: Any = None,
) -> Any:  # fmt: skip
    """Return zeros of the shape of an array: traced arrays have no uninitialised elements."""
    return _like(np.zeros_like, prototype, dtype=dtype, shape=shape, order=order)


@implements(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
    device: Any = None,
) -> Any:  # fmt: skip
    """Return an array of the shape of another one, filled with a value."""
    if not is_traced(fill_value):
        return _like(np.full_like, a, fill_value, dtype=dtype, shape=shape, order=order)
    result = _like(np.zeros_like, a, dtype=dtype, shape=shape, order=order)
    if not has_element_type(result.dtype) or not result.dtype.isnative:
        return DeferredArray(np.full_like, (result, fill_value), {})
    copyto(result, fill_value, casting="unsafe")
    return result


@implements(np.full)
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Array:
    """Return an array of a shape, filled with a value."""
    value = as_strong(fill_value)
    result = KnownArray(np.zeros(sizes_of(shape), value.dtype if dtype is None else dtype, order))
    require_in_range(fill_value, result.dtype)
    copyto(result, value, casting="unsafe")
    return result


@implements(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Array:
    """Copy an array."""
    array = as_strong(a)
    result = TracedArray(value_of(array))
    set_order(result, order, [array])
    return result


def require_castable(source: Array, dtype: Any, casting: str) -> None:
    """Check that a value may be written to an array of a dtype; Python integers may be written to all numbers.

    Raises
    ------
    TypeError
        The casting rule forbids it.
    """
    if source.weak is int and dtype.kind in "iufcV" and casting != "no":
        return
    if not np.can_cast(source.dtype, dtype, casting):  # type: ignore[arg-type]
        raise TypeError(f"Cannot cast array data from {source.dtype!r} to {dtype!r} according to the rule '{casting}'")


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Copy the elements of one array to another, or those where a mask is true."""
    if not isinstance(dst, TracedArray):
        raise TraceError(
            "copyto: traced values cannot be written to a NumPy array", where=user_line(),
            hint="write to a traced array, such as np.zeros_like(x) of a traced x",
        )  # fmt: skip
    source = as_traced(src)
    require_castable(source, dst.dtype, casting)
    require_in_range(src, dst.dtype)
    value = broadcast_value(as_strong(source), dst, dst.shape)
    if where is not True:
        mask = broadcast_to(value_of(as_traced(where, bool)), dst.shape)
        value = xla.select(mask, value, value_of(dst))
    dst.overwrite(value)


# -- ranges


def _kinds(*arrays: Array) -> list[Any]:
    return [v.kind for v in arrays]


@implements(np.linspace)
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """Return evenly spaced numbers."""
    count = num.__index__() if hasattr(num, "__index__") else index(num)
    if count < 0:
        raise ValueError(f"Number of samples, {count}, must be non-negative.")
    first, last = as_traced(start), as_traced(stop)
    inexact_dtype = inexact(common_kind(*_kinds(first, last)))
    result_dtype = inexact_dtype if dtype is None else np.dtype(dtype)
    low, high = as_traced(first, inexact_dtype), as_traced(last, inexact_dtype)
    delta: Any = np.subtract(high, low)
    steps = np.arange(count).astype(inexact_dtype).reshape(-1, *[1] * delta.ndim)
    between = count - 1 if endpoint else count
    step: Any = delta / between if between > 0 else as_traced(np.nan)
    result: Any = steps * (step if between > 0 else delta) + low
    if endpoint and count > 1:
        result[-1, ...] = high
    if result_dtype.kind in "iu":
        result = np.floor(result)
    result = moveaxis(as_traced(result, result_dtype), 0, axis)
    return (result, step) if retstep else result


@implements(np.logspace)
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """Return powers of evenly spaced exponents."""
    if np.ndim(base):
        rank = max(np.ndim(v) for v in (start, stop, base))
        start, stop, base = (_prepend_dimensions(as_strong(v), rank) for v in (start, stop, base))
        base = np.expand_dims(base, axis)
    result: Any = np.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return result if dtype is None else as_traced(result, dtype)


def _prepend_dimensions(array: Array, rank: int) -> Array:
    return reshape_row_major(array, (*[1] * (rank - array.ndim), *array.shape))


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Return a geometric sequence."""
    first, last = as_strong(start), as_strong(stop)
    inexact_dtype = inexact(common_kind(*_kinds(first, last)))
    if dtype is not None:
        inexact_dtype = np.result_type(inexact_dtype, np.dtype(dtype))
    low: Any = as_traced(first, inexact_dtype)
    high: Any = as_traced(last, inexact_dtype)
    _check_nonzero(first)
    _check_nonzero(last)
    sign = np.sign(low)
    low, high = low / sign, high / sign
    result: Any = as_traced(logspace(np.log10(low), np.log10(high), num, endpoint), inexact_dtype)
    if num > 0:
        result[0] = low
        if num > 1 and endpoint:
            result[-1] = high
    result = moveaxis(result * sign, 0, axis)
    return as_traced(result, inexact_dtype if dtype is None else dtype)


def _check_nonzero(end: Array) -> None:
    """Make runs raise an error if an end of a geometric sequence is zero."""
    op = value_of(end)
    if end.size:
        is_zero = xla.eq(op, values.zeros_like(op))
        error = ValueError("Geometric sequence cannot include zero")
        fail_where(require_current(), is_zero, xla.convert(is_zero, "s64"), lambda _: error)


# -- conversions to arrays


def _as_array(a: Any, dtype: Any) -> Array:
    if dtype is not None:
        require_storable(a, np.dtype(dtype))
    array = as_strong(a)
    result: Array = array if dtype is None else array.astype(dtype, copy=False)
    return result


@implements(np.asarray, np.asanyarray)
def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: bool | None = None, like: Any = None
) -> Array:
    """Return the array itself, converted if its dtype or order differs."""
    return array(a, dtype, copy=copy, order=order)


@implements(np.array)
def array(
    object: Any, dtype: Any = None, *, copy: bool | None = True, order: Any = "K", subok: bool = False,
    ndmin: int = 0, ndmax: int = 0, like: Any = None,
) -> Array:  # fmt: skip
    """Return a copy of an array, or an array of nested lists."""
    result = _as_array(object, dtype)
    letter = order_letter(order)
    if letter in "CF":
        note_sharing(result)
    has_order = (
        letter in "AK" or result.memory.flags.c_contiguous if letter != "F" else result.memory.flags.f_contiguous
    )
    if copy in (False, np._CopyMode.NEVER) and not (result is object and has_order):
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if (copy in (True, np._CopyMode.ALWAYS) and result is object) or not has_order:
        result = result.copy(letter)
    return result if result.ndim >= ndmin else reshape_row_major(result, (*[1] * (ndmin - result.ndim), *result.shape))


@implements(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Array:
    """Return the array itself if it is contiguous, else a copy; its rank is at least one."""
    result = _as_array(a, dtype)
    note_sharing(result)
    if not result.contiguous:
        result = result.copy()
    return result if result.ndim else reshape_row_major(result, (1,))


@implements(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Array:
    """Return the array itself if it is contiguous in column-major order, else a copy; its rank is at least one."""
    result = _as_array(a, dtype)
    note_sharing(result)
    if not result.memory.flags.f_contiguous:
        return TracedArray(value_of(result), memory=column_major(result.shape, result.dtype))
    return result if result.ndim else reshape_row_major(result, (1,))


@implements(np.require)
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Array:
    """Return the array, converted, copied and contiguous as required."""
    flags = {REQUIREMENTS[str(r).upper()] for r in requirements or ()}
    if {"C", "F"} <= flags:
        raise ValueError('Cannot specify both "C" and "F" order')
    result = asfortranarray(a, dtype) if "F" in flags else _as_array(a, dtype)
    if "C" in flags:
        note_sharing(result)
    return result.copy() if "O" in flags or ("C" in flags and not result.contiguous) else result


@implements(np.asarray_chkfinite)
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Array:
    """Convert to an array, and make runs raise an error if an element is not finite."""
    array: Array = asarray(a, dtype, order)
    if array.dtype.kind in "fc":
        trace = require_current()
        is_infinite: Any = ~np.isfinite(array).all()
        trace.fail_if(
            value_of(is_infinite), trace.constant(0, np.dtype(np.int64)),
            lambda _: ValueError("array must not contain infs or NaNs"),
        )  # fmt: skip
    return array


@implements(np.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Convert to another dtype."""
    if not isinstance(x, TracedArray):
        raise TypeError(f"Input should be a NumPy array. It is a {type(x)} instead.")
    return x.astype(dtype, copy=copy)


_OF_TEXTS = "can be printed, or be the message of an exception; not with options"


@implements(np.array2string, np.array_str, note=_OF_TEXTS)
def array2string(a: Any, *args: Any, **kwargs: Any) -> str:
    """Return the text of a traced array, which can be printed."""
    return _text_of(a, "!s", bool(args or kwargs) or not np.ndim(a))


@implements(np.array_repr, note=_OF_TEXTS)
def array_repr(arr: Any, *args: Any, **kwargs: Any) -> str:
    """Return the text of a traced array, which can be printed."""
    return _text_of(arr, "!r", bool(args or kwargs) or not np.ndim(arr))


def _text_of(a: Any, conversion: str, has_options: bool) -> str:
    if has_options:
        a.refuse_text()
    return TracedText([Field(a, conversion, "", a.refuse_text)])


@implements(np.may_share_memory)
def may_share_memory(a: Any, b: Any, /, max_work: int = 0) -> bool:
    """Return True if two arrays are views of one."""
    return _root_base(a) is _root_base(b)


def _root_base(array: Any) -> Any:
    base = getattr(array, "base", None)
    return array if base is None else _root_base(base)


ALTERNATIVES["shares_memory"] = "np.may_share_memory(a, b) tells whether both are views of one array"
for _name in ("save", "savetxt", "savez", "savez_compressed"):
    ALTERNATIVES[_name] = "return the array from the function, then save it"
