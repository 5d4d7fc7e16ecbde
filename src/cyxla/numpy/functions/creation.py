"""Creation of arrays."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from cyxla.errors import TraceError, UnimplementedError
from cyxla.numpy.functions.movement import array_of, moveaxis, resized
from cyxla.numpy.indexing.access import broadcast_value
from cyxla.numpy.indexing.bounds import fail_where
from cyxla.numpy.tracing.known_array import KnownArray
from cyxla.numpy.tracing.memory_layout import column_major
from cyxla.numpy.tracing.promotion import common_kind, inexact
from cyxla.numpy.tracing.registry import ALTERNATIVES, implements
from cyxla.numpy.tracing.result_layout import axes_like, inverse, order_letter, set_order
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

Array = TracedArray
_REQUIREMENTS = {
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


def filled(value: Any, dtype: Any, sizes: tuple[int, ...]) -> Array:
    """Return an array filled with a number."""
    return KnownArray(np.full(sizes, value, dtype))


def _like(a: Any, value: Any, dtype: Any, shape: Any, order: Any) -> Array:
    array = as_traced(a)
    sizes = array.shape if shape is None else sizes_of(shape)
    wanted = array.dtype if dtype is None else dtype
    axes = axes_like(array.memory, order_letter(order), len(sizes))
    if axes is None:
        return filled(value, wanted, sizes)
    return KnownArray(np.full([sizes[d] for d in axes], value, wanted).transpose(inverse(axes)))


@implements(np.zeros_like)
def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Array:
    """Return zeros of the shape of an array."""
    return _like(a, 0, dtype, shape, order)


@implements(np.ones_like)
def ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Array:
    """Return ones of the shape of an array."""
    return _like(a, 1, dtype, shape, order)


@implements(np.empty_like)
def empty_like(
    prototype: Any, /, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
    device: Any = None,
) -> Array:  # fmt: skip
    """Return zeros of the shape of an array: traced arrays have no uninitialised elements."""
    return _like(prototype, 0, dtype, shape, order)


@implements(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
    device: Any = None,
) -> Array:  # fmt: skip
    """Return an array of the shape of another one, filled with a value."""
    made = _like(a, 0, dtype, shape, order)
    copyto(made, fill_value, casting="unsafe")
    return made


@implements(np.full)
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Array:
    """Return an array of a shape, filled with a value."""
    value = array_of(fill_value)
    made = KnownArray(np.zeros(sizes_of(shape), value.dtype if dtype is None else dtype, order))
    copyto(made, value, casting="unsafe")
    return made


@implements(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Array:
    """Copy an array."""
    array = array_of(a)
    made = TracedArray(value_of(array))
    set_order(made, order, [array])
    return made


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
            "copyto: traced values cannot be written to a NumPy array from outside", where=user_line(),
            hint="write to np.zeros_like(x), or to a copy",
        )  # fmt: skip
    source = as_traced(src)
    require_castable(source, dst.dtype, casting)
    value = broadcast_value(source, dst, dst.shape)
    if where is not True:
        mask = broadcast_to(value_of(as_traced(where, bool)), dst.shape)
        value = xla.select(mask, value, value_of(dst))
    dst.overwrite(value)


# -- ranges


def _kinds(*values: Array) -> list[Any]:
    return [v.kind for v in values]


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
    exact = inexact(common_kind(*_kinds(first, last)))
    wanted = exact if dtype is None else np.dtype(dtype)
    low, high = as_traced(first, exact), as_traced(last, exact)
    delta: Any = np.subtract(high, low)
    steps = np.arange(count).astype(exact).reshape(-1, *[1] * delta.ndim)
    between = count - 1 if endpoint else count
    step: Any = delta / between if between > 0 else as_traced(np.nan)
    made: Any = steps * (step if between > 0 else delta) + low
    if endpoint and count > 1:
        made[-1, ...] = high
    if wanted.kind in "iu":
        made = np.floor(made)
    made = moveaxis(as_traced(made, wanted), 0, axis)
    return (made, step) if retstep else made


@implements(np.logspace)
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """Return powers of evenly spaced exponents."""
    if np.ndim(base):
        rank = max(np.ndim(v) for v in (start, stop, base))
        start, stop, base = (_of_rank(array_of(v), rank) for v in (start, stop, base))
        base = np.expand_dims(base, axis)
    made: Any = np.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return made if dtype is None else as_traced(made, dtype)


def _of_rank(array: Array, rank: int) -> Array:
    return resized(array, (*[1] * (rank - array.ndim), *array.shape))


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Return a geometric sequence."""
    first, last = array_of(start), array_of(stop)
    exact = inexact(common_kind(*_kinds(first, last)))
    if dtype is not None:
        exact = np.result_type(exact, np.dtype(dtype))
    low: Any = as_traced(first, exact)
    high: Any = as_traced(last, exact)
    _refuse_zeros(first)
    _refuse_zeros(last)
    sign = np.sign(low)
    low, high = low / sign, high / sign
    made: Any = as_traced(logspace(np.log10(low), np.log10(high), num, endpoint), exact)
    if num > 0:
        made[0] = low
        if num > 1 and endpoint:
            made[-1] = high
    made = moveaxis(made * sign, 0, axis)
    return as_traced(made, exact if dtype is None else dtype)


def _refuse_zeros(end: Array) -> None:
    """Make runs raise an error if an end of a geometric sequence is zero."""
    op = value_of(end)
    if end.size:
        bad = xla.eq(op, values.zeros_like(op))
        wrong = ValueError("Geometric sequence cannot include zero")
        fail_where(require_current(), bad, xla.convert(bad, "s64"), lambda _: wrong)


# -- conversions to arrays


def _as_array(a: Any, dtype: Any) -> Array:
    array = array_of(a)
    made: Array = array if dtype is None else array.astype(dtype, copy=False)
    return made


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
    made = _as_array(object, dtype)
    letter = order_letter(order)
    lies = letter in "AK" or made.memory.flags.c_contiguous if letter != "F" else made.memory.flags.f_contiguous
    if copy in (False, np._CopyMode.NEVER) and not (made is object and lies):
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    if (copy in (True, np._CopyMode.ALWAYS) and made is object) or not lies:
        made = made.copy(letter)
    return made if made.ndim >= ndmin else resized(made, (*[1] * (ndmin - made.ndim), *made.shape))


@implements(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Array:
    """Return the array itself if it is contiguous, else a copy; its rank is at least one."""
    made = _as_array(a, dtype)
    if not made.contiguous:
        made = made.copy()
    return made if made.ndim else resized(made, (1,))


@implements(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Array:
    """Return the array itself if it is contiguous in column-major order, else a copy; its rank is at least one."""
    made = _as_array(a, dtype)
    if not made.memory.flags.f_contiguous:
        return TracedArray(value_of(made), memory=column_major(made.shape, made.dtype))
    return made if made.ndim else resized(made, (1,))


@implements(np.require)
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Array:
    """Return the array, converted, copied and contiguous as required."""
    asked = {_REQUIREMENTS[str(r).upper()] for r in requirements or ()}
    if {"C", "F"} <= asked:
        raise ValueError('Cannot specify both "C" and "F" order')
    made = asfortranarray(a, dtype) if "F" in asked else _as_array(a, dtype)
    return made.copy() if "O" in asked or ("C" in asked and not made.contiguous) else made


@implements(np.asarray_chkfinite)
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Array:
    """Raise: only a run can tell whether values are finite.

    Raises
    ------
    UnimplementedError
        Always.
    """
    raise UnimplementedError(
        "asarray_chkfinite of a traced array", where=user_line(), hint="np.isfinite(x).all() is a result to return"
    )


@implements(np.astype)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Convert to another dtype."""
    if not isinstance(x, TracedArray):
        raise TypeError(f"Input should be a NumPy array. It is a {type(x)} instead.")
    return x.astype(dtype, copy=copy)


@implements(np.array2string, np.array_repr, np.array_str, note="no values while tracing")
def array2string(a: Any, *args: Any, **kwargs: Any) -> str:
    """Return the text of the traced array, which has no values."""
    return repr(a)


@implements(np.may_share_memory)
def may_share_memory(a: Any, b: Any, /, max_work: int = 0) -> bool:
    """Return True if two arrays are views of one."""
    return _whole(a) is _whole(b)


def _whole(array: Any) -> Any:
    base = getattr(array, "base", None)
    return array if base is None else _whole(base)


ALTERNATIVES["shares_memory"] = "np.may_share_memory(a, b) says whether both are parts of one array"
for _name in ("save", "savetxt", "savez", "savez_compressed"):
    ALTERNATIVES[_name] = "return the array from the function, then save it"
