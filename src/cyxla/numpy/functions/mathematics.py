"""Mathematical functions that are not ufuncs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial, inf, pi, prod
from operator import index
from sys import float_info
from typing import Any

import ml_dtypes
import numpy as np

from cyxla.errors import DTypeError, OutOfRangeError, ShapeError
from cyxla.numpy.gradient.composites import attach
from cyxla.numpy.indexing.access import convert_for_assignment
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, cast, is_traced, traced, value_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.registry import ALTERNATIVES, implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import result_type
from cyxla.numpy.tracing.results.result_layout import set_order
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.user_program.classes import class_of
from cyxla.numpy.tracing.user_program.traced_once import TracedOnce
from cyxla.numpy.ufunc_methods.reduce import NOT_GIVEN
from cyxla.numpy.ufuncs.apply import call, to_outputs
from cyxla.xla.hlo import OPCODES, Instruction
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import special, values

Array = Any  # a traced array, computed on by NumPy's functions
_CLIP = np._core.umath.clip  # type: ignore[attr-defined]
ALTERNATIVES.update({
    "real_if_close": "it depends on the values of the imaginary parts: use np.real(x)",
    "vectorize": "call the function on the array itself, or use cyxla.map to call it for each row",
})  # fmt: skip


def keep_python_number(value: Any) -> Any:
    """Return a Python number as it is, other values as arrays."""
    return value if type(value) in (int, float, complex) else as_traced(value)


# -- rounding and limits


@implements(np.round, np.around)
def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Round to decimals, halves to even."""
    array, decimals = as_strong(a), index(decimals)
    if array.dtype.kind == "c":
        return _to_out(make_complex(round_(np.real(array), decimals), round_(np.imag(array), decimals)), out)
    if array.dtype.kind in "iu":
        return _to_out(np.copy(array) if decimals >= 0 else _round_integers(array, -decimals), out)
    if decimals == 0:
        return _to_out(np.rint(array), out)
    if array.dtype.kind == "b":
        raise DTypeError(f"round: an array of bools cannot be rounded to {decimals} decimals")
    scale = 10.0 ** abs(decimals) if abs(decimals) <= float_info.max_10_exp else inf
    result = np.rint(array * scale) / scale if decimals > 0 else np.rint(array / scale) * scale
    return _to_out(np.copy(result, order="A"), out)


def _round_integers(array: Array, digits: int) -> Array:
    scale = 10.0**digits
    return cast(np.rint(array / scale) * scale, array.dtype)


def _to_out(result: Any, out: Any, name: str = "round") -> Any:
    return result if out is None else to_outputs([result], out, True, "unsafe", name)


def make_complex(real: Array, imag: Array) -> TracedArray:
    """Combine real and imaginary parts."""
    result = TracedArray(xla.complex_(value_of(real), value_of(imag)))
    set_order(result, "K", [real])
    return result


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    """Round towards zero."""
    return np.trunc(as_strong(x), out=out)


@implements(np.clip)
def clip(
    a: Any, a_min: Any = NOT_GIVEN, a_max: Any = NOT_GIVEN, out: Any = None, *, min: Any = NOT_GIVEN,
    max: Any = NOT_GIVEN, **kwargs: Any,
) -> Any:  # fmt: skip
    """Limit elements to bounds; None is no bound."""
    low, high = _bounds(a_min, a_max, min, max)
    array = as_traced(a)
    if array.dtype.kind in "iu":  # Python integers may be out of range of the dtype
        info = np.iinfo(array.dtype)
        low = None if type(low) is int and low <= info.min else low
        high = None if type(high) is int and high >= info.max else high
    if low is None and high is None:
        return call(np.positive, (array,), out=out, **kwargs)
    if low is None:
        return call(np.minimum, (array, high), out=out, **kwargs)
    if high is None:
        return call(np.maximum, (array, low), out=out, **kwargs)
    return call(_CLIP, (array, low, high), out=out, **kwargs)


def _bounds(a_min: Any, a_max: Any, low: Any, high: Any) -> tuple[Any, Any]:
    unset = NOT_GIVEN
    if a_min is unset and a_max is unset:
        return (None if low is unset else low), (None if high is unset else high)
    if a_min is unset:
        raise TypeError("clip() missing 1 required positional argument: 'a_min'")
    if a_max is unset:
        raise TypeError("clip() missing 1 required positional argument: 'a_max'")
    if low is not unset or high is not unset:
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    return a_min, a_max


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """Replace nan and infinities by numbers."""
    array = as_strong(x)
    result: Any = np.copy(array) if copy else array
    replace_non_finite(result, nan, posinf, neginf)
    return result


def replace_non_finite(array: Any, nan: Any, posinf: Any, neginf: Any) -> None:
    """Replace nan and infinities in an array by numbers that broadcast to its shape."""
    if array.dtype.kind not in "fcV":
        return
    for part in (array.real, array.imag) if array.dtype.kind == "c" else (array,):
        is_inf, info = np.isinf(part), ml_dtypes.finfo(part.dtype)  # type: ignore[no-untyped-call]
        replacements = (
            (np.isnan(part), nan),
            (np.logical_and(is_inf, part > 0), info.max if posinf is None else posinf),
            (np.logical_and(is_inf, part < 0), info.min if neginf is None else neginf),
        )
        for mask, replacement in replacements:
            np.copyto(part, replacement, where=mask)


# -- parts of complex numbers


def _integer_for_bool(value: TracedArray) -> TracedArray:
    """Return an array, or the integer that a bool of Python has as its parts."""
    return traced(convert(value_of(value), np.dtype(np.int64)), int) if class_of(value) is bool else value


@implements(np.real)
def real(val: Any) -> Any:
    """Return a view of the real parts; a real array itself."""
    array = _integer_for_bool(as_traced(val))
    if array.dtype.kind != "c":
        return array
    return array.make_view(xla.real, lambda base, new: xla.complex_(new, xla.imag(base)), array.memory.real)


@implements(np.imag)
def imag(val: Any) -> Any:
    """Return a view of the imaginary parts; read-only zeros for real arrays."""
    array = _integer_for_bool(as_traced(val))
    if array.dtype.kind != "c":
        return array.make_view(values.zeros_like, None, None)
    return array.make_view(xla.imag, lambda base, new: xla.complex_(xla.real(base), new), array.memory.imag)


@implements(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    """Return the angle in the complex plane."""
    array = as_strong(z)
    parts = (np.imag(array), np.real(array)) if array.dtype.kind == "c" else (0, array)
    result = np.arctan2(*parts)
    return result * (180 / pi) if deg else result


# -- functions


@implements(np.sinc)
def sinc(x: Any) -> Any:
    """Compute sin(pi x) / (pi x); 1 at 0."""
    scaled: Array = pi * as_strong(x)
    small = np.finfo(scaled.dtype).eps if scaled.dtype.kind == "f" else 1e-20
    nonzero = np.where(scaled != 0, scaled, np.asarray(small, scaled.dtype))
    result: Array = np.sin(nonzero) / nonzero
    return traced(attach([value_of(scaled)], [value_of(result)], vjp=_sinc_vjp)[0])


_SINC_SERIES = [
    2 * k * (-1) ** k / factorial(2 * k + 1) for k in range(1, 10)
]  # coefficients of the derivative's Taylor series, for x, x^3, ..


def _sinc_vjp(inputs: list[XlaOp], _: list[XlaOp], cotangents: Sequence[XlaOp | None]) -> list[XlaOp | None]:
    """Differentiate by a series near 0, where the closed form cancels."""
    if cotangents[0] is None:
        return [None]
    t: Array = traced(inputs[0])
    is_small = np.abs(t) < 1
    small, large = np.where(is_small, t, 0), np.where(is_small, 1, t)
    series = np.zeros_like(t)
    for weight in _SINC_SERIES[::-1]:
        series = series * small * small + weight
    derivative: Array = np.where(is_small, series * small, (np.cos(large) - np.sin(large) / large) / large)
    return [xla.multiply(cotangents[0], value_of(derivative))]


@implements(np.i0)
def i0(x: Any) -> Any:
    """Compute the modified Bessel function of order 0."""
    array = as_strong(x)
    if array.dtype.kind == "c":
        raise TypeError("i0 not supported for complex values")
    if array.dtype.kind not in "fV":
        array = cast(array, np.float64)
    op = value_of(array)
    return TracedArray(convert(special.bessel_i0(values.widened(op)), array.dtype))


# -- vectors


@implements(np.cross)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """Compute the cross product; for vectors in a plane its third component."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = as_strong(a), as_strong(b)
    if x.ndim < 1 or y.ndim < 1:
        raise ShapeError("At least one array has zero dimension")
    x, y = np.moveaxis(x, axisa, -1), np.moveaxis(y, axisb, -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ShapeError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    dtype = result_type(x.dtype, y.dtype)
    x, y = (cast(v, dtype) for v in (x, y))
    planar = x.shape[-1] == 2 and y.shape[-1] == 2
    a0, a1, a2 = _components(x)
    b0, b1, b2 = _components(y)
    third = _subtract_products(a0, b1, a1, b0)
    if planar:
        return third
    first_two = [_subtract_products(a1, b2, a2, b1), _subtract_products(a2, b0, a0, b2)]
    result = np.stack([*(np.broadcast_to(v, third.shape) for v in first_two), third], -1)
    return np.moveaxis(result, -1, axisc)


def _components(x: Array) -> list[Array | None]:
    return [x[..., k] if k < x.shape[-1] else None for k in range(3)]


def _subtract_products(a: Array | None, b: Array | None, c: Array | None, d: Array | None) -> Array:
    """Subtract two products, either of which may be missing."""
    first = None if a is None or b is None else a * b
    second = None if c is None or d is None else c * d
    return -second if first is None else first if second is None else first - second  # type: ignore[operator]


@implements(np.linalg.cross)
def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Compute the cross product."""
    x, y = as_strong(x1), as_strong(x2)
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise ShapeError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, "
            f"but they are {x.shape[axis]} and {y.shape[axis]} dimensional instead."
        )
    return cross(x, y, axis=axis)


# -- choices


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Select from the first of several choices whose condition holds."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    choices = [keep_python_number(c) for c in (*choicelist, default)]
    kinds: list[Any] = [type(c) if type(c) in (int, float, complex) else c.kind for c in choices]
    dtype = result_type(*kinds)
    conditions = [as_traced(c) for c in condlist]
    for k, condition in enumerate(conditions):
        if condition.dtype.kind != "b":
            raise TypeError(f"invalid entry {k} in condlist: should be boolean ndarray")
    arrays = [*[_cast_choice(as_traced(c), dtype) for c in choices[:-1]], cast(as_traced(choices[-1]), dtype)]
    shape = np.broadcast_shapes(*[a.shape for a in (*conditions, *arrays)])
    result: Array = np.broadcast_to(arrays[-1], shape)
    for condition, choice in zip(conditions[::-1], arrays[-2::-1], strict=True):
        result = np.where(condition, choice, result)
    return result


def _cast_choice(array: Array, dtype: Any) -> Array:
    if not np.can_cast(array.dtype, dtype, "same_kind"):
        raise TypeError(f"Cannot cast array data from {array.dtype!r} to {dtype!r} according to the rule 'same_kind'")
    return cast(array, dtype)


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Apply functions where conditions hold."""
    array = as_strong(x)
    conditions = _conditions(condlist, array)
    if len(conditions) == len(funclist) - 1:
        any_condition = conditions[0]
        for condition in conditions[1:]:
            any_condition = np.logical_or(any_condition, condition)
        conditions.append(np.logical_not(any_condition))
    elif len(conditions) != len(funclist):
        n = len(conditions)
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    result: Array = np.zeros_like(array)
    for condition, function in zip(conditions, funclist, strict=True):
        value = _of_each_element(function, array, args, kw) if callable(function) else function
        if value is None:  # it has other elements for the whole array than for the selected ones
            return hooks.sized_function(np.piecewise, (array, condlist, funclist, *args), kw)
        result = np.where(
            _broadcast_leading(condition, array.shape), TracedArray(convert_for_assignment(value, array)), result
        )
    return result


def _of_each_element(function: Callable[..., Any], array: Array, args: Any, kw: Any) -> Any:
    """Return a function of an array if each element follows from the one at its place alone, else None."""
    failures = require_current().failures
    before = len(failures)
    array = TracedArray(xla.copy(value_of(array)))  # tells it from the array itself, which the function may use, too
    try:
        value = function(array, *args, **kw)
    except Exception:  # which the function may not raise for the selected elements
        value = None
    if value is None or not _is_elementwise(value, array):
        del failures[before:]
        return None
    return value


def _is_elementwise(value: Any, array: Array) -> bool:
    """Return True if each element of a value depends on one element of an array alone, at the same place, or on none.

    A value that depends on none must be a single element: others have to fit the number of selected elements.
    """
    if not is_traced(value):
        return np.size(value) == 1
    if not isinstance(value, TracedArray):
        return False
    source, dims = value_of(array).instruction, value_of(array).shape.dims
    last = value_of(value).instruction
    assert last is not None
    depends: dict[Any, bool] = {source: True}
    pending = [last]
    while pending:
        ins = pending[-1]
        if ins in depends:
            pending.pop()
            continue
        missing = [o for o in ins.operands if o not in depends]
        if missing:
            pending += missing
            continue
        depends[pending.pop()] = any(depends[o] for o in ins.operands)
        if depends[ins] and not (
            OPCODES[ins.opcode].elementwise
            and ins.shape.dims == dims
            and all(depends[o] or _is_uniform(o) for o in ins.operands)
        ):
            return False
    return value.size == 1 or (depends[last] and value.shape == array.shape)


def _is_uniform(ins: Instruction) -> bool:
    """Return True for an array of equal elements."""
    return ins.shape.size == 1 or (ins.opcode == "broadcast" and ins.operands[0].shape.size == 1)


def _broadcast_leading(mask: Array, sizes: tuple[int, ...]) -> Array:
    """Broadcast a mask of the first dimensions to all dimensions."""
    rank = mask.ndim
    if mask.shape != sizes[:rank]:
        raise OutOfRangeError(f"piecewise: a condition of shape {mask.shape} does not match an array of shape {sizes}")
    return np.reshape(mask, (*mask.shape, *[1] * (len(sizes) - rank)))


def _conditions(condlist: Any, array: Array) -> list[Array]:
    """Return a list of conditions, also for a single one."""
    if not isinstance(condlist, (list, tuple)) and np.ndim(condlist) == 0:
        return [cast(as_traced(condlist), bool)]
    if len(condlist) == 0:
        raise IndexError("index 0 is out of bounds for axis 0 with size 0")
    if array.ndim and not isinstance(condlist[0], list) and np.ndim(condlist[0]) == 0:
        return [cast(as_traced(condlist), bool)]
    return [cast(as_traced(c), bool) for c in condlist]


# -- functions along axes


@implements(np.apply_along_axis)
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a function to all vectors along an axis."""
    array = as_strong(arr)
    axis = np.lib.array_utils.normalize_axis_index(axis, array.ndim)
    vectors = np.moveaxis(array, axis, -1)
    if 0 in vectors.shape[:-1]:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    function = func1d
    if prod(vectors.shape[:-1]) > _MAX_UNROLLED and not isinstance(func1d, TracedOnce):
        function = TracedOnce(func1d)
    result = _map_vectors(lambda vector: as_strong(function(vector, *args, **kwargs)), vectors)
    outer_rank, result_rank = vectors.ndim - 1, result.ndim - vectors.ndim + 1
    order = [*range(axis), *range(outer_rank, outer_rank + result_rank), *range(axis, outer_rank)]
    return np.transpose(result, order)


_MAX_UNROLLED = 32  # greatest number of vectors for which the function is traced once for each


def _map_vectors(function: Callable[[Array], Array], vectors: Array) -> Array:
    from cyxla.numpy.control import map as map_

    outer = vectors.shape[:-1]
    rows = np.reshape(vectors, (prod(outer), vectors.shape[-1]))
    if len(rows) <= _MAX_UNROLLED:
        result = np.stack([function(rows[k]) for k in range(len(rows))])
    else:
        result = map_(function, rows)
    return np.reshape(result, (*outer, *result.shape[1:]))


@implements(np.apply_over_axes)
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """Apply a function of an array and an axis for several axes in turn."""
    array = as_strong(a)
    for axis in [axes] if np.ndim(axes) == 0 else axes:
        dimension = axis + array.ndim if axis < 0 else axis
        result = as_strong(func(array, dimension))
        if result.ndim != array.ndim:
            result = np.expand_dims(result, dimension)
        if result.ndim != array.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        array = result
    return array
