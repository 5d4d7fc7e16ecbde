"""Comparisons of arrays, predicates of elements, and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.numpy.functions.mathematics import keep_python_number
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, cast, require_known, value_of
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import kind_of
from cyxla.numpy.tracing.results.promotion import result_type as common_type_of

Array = Any  # a traced array, computed on by NumPy's functions
_PRECISIONS = {np.dtype(np.float16): 0, np.dtype(np.float32): 1, np.dtype(np.float64): 2}
_REAL, _COMPLEX = (np.float16, np.float32, np.float64), (np.complex64, np.complex64, np.complex128)


# -- comparisons


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Test whether elements are equal within tolerances; the relative one is by the second array."""
    x, y, atol, rtol = map(_weak_or_array, (a, b, atol, rtol))
    if not isinstance(y, TracedArray):
        y = float(y) if type(y) is int else y
    elif y.weak:
        y = TracedArray(convert(value_of(y), np.dtype(float)), float) if y.weak is int else y
    else:
        y = cast(y, common_type_of(y.dtype, float))
    close = np.less_equal(abs(x - y), atol + rtol * abs(y))
    same: Array = np.logical_or(np.logical_and(close, np.isfinite(y)), np.equal(x, y))
    return np.logical_or(same, np.logical_and(np.isnan(x), np.isnan(y))) if equal_nan else same


def _weak_or_array(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else keep_python_number(value)


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Test whether all elements are close."""
    return np.all(isclose(a, b, rtol, atol, equal_nan))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Test whether two arrays have equal shapes and elements."""
    x, y = as_strong(a1), as_strong(a2)
    if x.shape != y.shape:
        return False
    same = np.equal(x, y)
    if equal_nan:
        same = np.logical_or(same, np.logical_and(np.isnan(x), np.isnan(y)))
    return np.all(same)


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    """Test whether two arrays are equal after broadcasting."""
    x, y = as_strong(a1), as_strong(a2)
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return np.all(np.equal(x, y))


# -- elements


def _is_signed_infinity(x: Any, out: Any, negative: bool) -> Any:
    array = as_strong(x)
    if array.dtype.kind == "c":
        raise TypeError(f"This operation is not supported for {array.dtype} values because it would be ambiguous.")
    sign = np.signbit(array)
    return np.logical_and(np.isinf(array), sign if negative else np.logical_not(sign), out=out)


@implements(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    """Test for plus infinity."""
    return _is_signed_infinity(x, out, False)


@implements(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    """Test for minus infinity."""
    return _is_signed_infinity(x, out, True)


@implements(np.iscomplex)
def iscomplex(x: Any) -> Any:
    """Test for nonzero imaginary parts."""
    return np.not_equal(np.imag(as_strong(x)), 0)


@implements(np.isreal)
def isreal(x: Any) -> Any:
    """Test for zero imaginary parts."""
    return np.equal(np.imag(as_strong(x)), 0)


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    """Return True if the dtype is complex."""
    return as_traced(x).dtype.kind == "c"


@implements(np.isrealobj)
def isrealobj(x: Any) -> bool:
    """Return True if the dtype is not complex."""
    return not iscomplexobj(x)


# -- dtypes


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> Any:
    """Return the common dtype of arrays and dtypes."""
    return common_type_of(*map(_kind, arrays_and_dtypes))


def _kind(value: Any) -> Any:
    """Return the kind of an array, a number or a dtype."""
    if isinstance(value, TracedArray):
        return value.kind
    if isinstance(value, (np.dtype, type, str)):
        return np.dtype(value)
    return kind_of(value)


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Return True if an array or dtype can be cast by a casting rule."""
    if isinstance(from_, TracedArray) and from_.weak:
        raise TypeError("can_cast() does not support Python ints, floats, and complex")
    return np.can_cast(from_.dtype if isinstance(from_, TracedArray) else from_, to, casting)


@implements(np.min_scalar_type)
def min_scalar_type(a: Any, /) -> Any:
    """Return the dtype of an array, or the least dtype of a scalar, which becomes static."""
    array = as_traced(a)
    if array.ndim == 0:
        require_known(array, "give its least dtype", hint="use x.dtype")
    return array.dtype


@implements(np.common_type)
def common_type(*arrays: Any) -> Any:
    """Return the common inexact dtype of arrays."""
    dtypes = [as_traced(a).dtype for a in arrays]
    precision = 0
    for dtype in dtypes:
        real = np.empty(0, dtype).real.dtype
        if dtype.kind not in "iu" and real not in _PRECISIONS:
            raise TypeError("can't get common type for non-numeric array")
        precision = max(precision, 2 if dtype.kind in "iu" else _PRECISIONS[real])
    return (_COMPLEX if any(d.kind == "c" for d in dtypes) else _REAL)[precision]
