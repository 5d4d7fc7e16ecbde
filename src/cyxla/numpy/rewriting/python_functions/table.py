"""Python's functions of numbers for traced ones: `range`, `int`, `max`, `math.sqrt` and others."""

from __future__ import annotations

import array
import heapq
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce, wraps
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from cyxla.errors import TraceError
from cyxla.numpy.array_methods.python_numbers import kind_of, without_bool
from cyxla.numpy.rewriting.loops.iterables import (
    TracedRange,
    backwards,
    combinations,
    enumerated,
    indexed_elements,
    indices,
    repeated,
    zipped,
)
from cyxla.numpy.rewriting.python_functions import classes, impure, reductions, texts
from cyxla.numpy.rewriting.python_functions.choices import condition, truth
from cyxla.numpy.rewriting.python_functions.decimals import rounded_decimal, rounded_integer
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.arrays.traced_array import LazyList, TracedArray, as_traced, is_traced, traced, value_of
from cyxla.numpy.tracing.containers import complete_lists
from cyxla.numpy.tracing.function_calls import call_function
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.tracing.user_program.classes import is_number
from cyxla.xla.hlo.builder import functions as xla

_np: Any = np  # its functions dispatch to this package
_PYTHON_DTYPES = {int: np.dtype(np.int64), float: np.dtype(np.float64), complex: np.dtype(np.complex128)}


def _is_number(value: Any) -> bool:
    """Return True for a traced number, or a traced array without dimensions."""
    return isinstance(value, TracedArray) and value.known is None and value.ndim == 0


def python_number(value: Any, kind: type) -> TracedArray:
    """Convert a traced number to a Python number of a class, as ``int(x)`` and ``float(x)`` do."""
    op = xla.reshape(value_of(value), ())
    return traced(convert(op, _PYTHON_DTYPES[kind]), kind)


def _range(*bounds: Any) -> Any:
    if not any(map(is_traced, bounds)):
        return range(*bounds)
    return TracedRange.of(*bounds)


def _int(*args: Any, **kwargs: Any) -> Any:
    if len(args) != 1 or kwargs or not _is_number(args[0]):
        return int(*args, **kwargs)
    if args[0].dtype.kind == "c":
        _refuse_scalar(args[0], "int")
        raise TypeError("int() argument must be a string, a bytes-like object or a real number, not 'complex'")
    classes.leave_unless_int64(args[0])
    return python_number(args[0], int)


def _float(*args: Any) -> Any:
    if len(args) != 1 or not _is_number(args[0]):
        return float(*args)
    if args[0].dtype.kind == "c":
        _refuse_scalar(args[0], "float")
        raise TypeError("float() argument must be a string or a real number, not 'complex'")
    return python_number(args[0], float)


def _refuse_scalar(value: TracedArray, name: str) -> None:
    """Raise an error, for which the plain function runs, for a complex number of NumPy's, which warns instead."""
    if value.weak is None and value.rank0 is not Rank0.ARRAY:
        raise TraceError(
            f"{name}() discards the imaginary part of a number, and NumPy warns of it", where=user_line(),
            hint=f"write {name}(x.real)",
        )  # fmt: skip


def _complex(*args: Any) -> Any:
    if not any(map(_is_number, args)):
        return complex(*args)
    first, second = map(as_traced, (*args, 0)[:2])
    if len(args) == 1 and first.dtype.kind == "c":
        return python_number(first, complex)
    real: Any = _real(_np.real(first))
    imaginary: Any = _real(_np.real(second))
    if second.dtype.kind == "c":
        real = real - _real(_np.imag(second))
    if first.dtype.kind == "c":
        imaginary = imaginary + _real(_np.imag(first))
    return traced(xla.complex_(value_of(real), value_of(imaginary)), complex)


def _bool(*args: Any) -> Any:
    if len(args) == 1 and isinstance(args[0], StackedList):
        has_elements = condition(args[0])
        return truth(has_elements) if is_traced(has_elements) else has_elements
    if len(args) != 1 or not (isinstance(args[0], TracedArray) and args[0].known is None):
        return bool(*args)
    return truth(args[0])


def _len(value: Any) -> Any:
    if isinstance(value, SizedArray):
        return value.shape[0]
    if isinstance(value, TracedRange) or (isinstance(value, StackedList) and value.is_sized):
        return value.length
    return len(value)


# -- the module math: results are Python floats, and errors are those of the domain


def _real(value: Any) -> Any:
    return python_number(as_traced(value), float)


def _math(original: Callable[..., Any], compute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def substitute(*args: Any) -> Any:
        if not any(map(_is_number, args)):
            return original(*args)
        values = [_real(a) for a in args]
        result = _real(compute(*values))
        _check_domain(original.__name__, values, result)
        return result

    return substitute


def _check_domain(name: str, values: Sequence[Any], result: Any) -> None:
    """Make runs fail in which a function has no finite result for finite arguments, with Python's error."""
    if name in _TOTAL:
        return
    arguments_are_nan: Any = False
    arguments_are_finite: Any = True
    for v in values:
        arguments_are_nan = _np.logical_or(arguments_are_nan, _np.isnan(v))
        arguments_are_finite = _np.logical_and(arguments_are_finite, _np.isfinite(v))
    undefined = _np.logical_and(_np.isnan(result), _np.logical_not(arguments_are_nan))
    infinite = _np.logical_and(_np.isinf(result), arguments_are_finite)
    is_pole = name in _WITH_POLES if name != "pow" else values[0] == 0
    failed = _np.logical_or(undefined, infinite)
    number = _np.where(_np.logical_and(infinite, _np.logical_not(is_pole)), 1, 0)

    def error(is_too_large: int) -> Exception:
        return OverflowError("math range error") if is_too_large else ValueError("math domain error")

    require_current().fail_if(value_of(as_traced(failed)), value_of(as_traced(number, np.int64)), error)


_TOTAL = frozenset(
    ["atan", "atan2", "asinh", "tanh", "fabs", "cbrt", "erf", "erfc", "copysign", "degrees", "radians", "hypot"]
)  # defined for all numbers; those of NaN are NaN, and those that are too large are infinite
_WITH_POLES = frozenset(["log", "log2", "log10", "log1p", "atanh"])


def _hypot(*lengths: Any) -> Any:
    """Return the length of a vector of any number of dimensions."""
    if not any(map(_is_number, lengths)):
        return math.hypot(*lengths)
    first, *others = map(_real, lengths)
    return _real(reduce(_np.hypot, others, _np.abs(first)))


def _rounded(original: Callable[..., Any], compute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def substitute(value: Any) -> Any:
        if not _is_number(value):
            return original(value)
        if original is math.trunc and value.weak is None and value.dtype != np.float64:
            raise TypeError(f"type numpy.{value.dtype.name} doesn't define __trunc__ method")
        return _int(compute(_real(value))) if as_traced(value).dtype.kind == "f" else python_number(value, int)

    return substitute


def _tested(original: Callable[..., Any], compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda value: truth(compute(value)) if _is_number(value) else original(value)


def _log(value: Any, *base: Any) -> Any:
    if not any(map(_is_number, (value, *base))):
        return math.log(value, *base)
    natural = _math(math.log, _np.log)
    return natural(value) / natural(*base) if base else natural(value)


def _isclose(a: Any, b: Any, *, rel_tol: Any = 1e-9, abs_tol: Any = 0.0) -> Any:
    if not any(map(_is_number, (a, b, rel_tol, abs_tol))):
        return math.isclose(a, b, rel_tol=rel_tol, abs_tol=abs_tol)
    x, y = _real(a), _real(b)
    distance = _np.abs(x - y)
    allowed = _np.maximum(_np.maximum(_np.abs(x), _np.abs(y)) * rel_tol, abs_tol)
    return truth(_np.logical_or(x == y, _np.logical_and(distance <= allowed, _np.isfinite(distance))))


def _modf(value: Any) -> Any:
    if not _is_number(value):
        return math.modf(value)
    x = _real(value)
    whole = _np.trunc(x)
    fraction = _np.where(_np.isinf(x), 0.0, x - whole)
    return _real(_np.copysign(fraction, x)), _real(whole)


_SAME_NAMES = "sqrt exp expm1 exp2 log2 log10 log1p sin cos tan sinh cosh tanh fabs copysign cbrt degrees radians fmod"
_FLOAT_FUNCTIONS = {
    **{n: n for n in _SAME_NAMES.split()},
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "pow": "float_power",
}  # fmt: skip
_ROUNDING = {"floor": "floor", "ceil": "ceil", "trunc": "trunc"}
_TESTS = {"isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite"}


def _round(value: Any, *digits: Any, **keyword: Any) -> Any:
    if not _is_number(value) or not is_number(value):
        return round(value, *digits, **keyword)
    (count,) = (*digits, *keyword.values(), None)[:1]
    if kind_of(value) in (bool, int):
        return rounded_integer(without_bool(value), count)
    if value.dtype.kind != "f":
        return round(value, *digits, **keyword)
    if count is None:
        return _int(_np.rint(value))
    return rounded_decimal(value, count) if value.weak is float else _np.round(value, count)


def _on_memory(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose C looks for the elements of lists in their memory."""

    def substitute(*values: Any) -> Any:
        complete_lists(values)
        return function(*values)

    return substitute


def _of_list(method: Any) -> Callable[..., Any]:
    """Return a method of `list`, called as ``list.append(values, x)``, for what stands for a list in the program."""

    def substitute(values: Any, /, *args: Any, **kwargs: Any) -> Any:
        bound = getattr(values, method.__name__) if isinstance(values, LazyList) else partial(method, values)
        return bound(*args, **kwargs)

    return substitute


def _as_strided(x: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a view with other sizes and strides of an array, also of one of the program."""
    is_of_program = isinstance(x, (TracedArray, SizedArray))
    return call_function(as_strided, x, *args, **kwargs) if is_of_program else as_strided(x, *args, **kwargs)


_OF_MEMORY = (
    heapq.heapify, heapq.heappush, heapq.heappop, heapq.heappushpop, heapq.heapreplace,
    operator.concat, operator.iconcat, array.array,
)  # fmt: skip

_METHODS_OF_LISTS = {name for name in vars(list) if callable(getattr(list, name))} - set(vars(object))

SUBSTITUTES: dict[Callable[..., Any], Callable[..., Any]] = {
    **{function: _on_memory(function) for function in _OF_MEMORY},
    **{method: _of_list(method) for name, method in vars(list).items() if name in _METHODS_OF_LISTS},
    range: _range, int: _int, float: _float, complex: _complex, bool: _bool, len: _len,
    round: _round, math.isclose: _isclose, math.modf: _modf,
    as_strided: _as_strided, enumerate: enumerated, zip: zipped, reversed: backwards, itertools.product: combinations,
    itertools.repeat: repeated, np.ndindex: indices,
    np.ndenumerate: indexed_elements, math.log: _log, math.hypot: _hypot,
    **{getattr(math, n): _math(getattr(math, n), getattr(np, f)) for n, f in _FLOAT_FUNCTIONS.items()},
    **{getattr(math, n): _rounded(getattr(math, n), getattr(np, f)) for n, f in _ROUNDING.items()},
    **{getattr(math, n): _tested(getattr(math, n), getattr(np, f)) for n, f in _TESTS.items()},
    **classes.SUBSTITUTES, **reductions.SUBSTITUTES, **texts.SUBSTITUTES, **impure.SUBSTITUTES,
}  # fmt: skip
