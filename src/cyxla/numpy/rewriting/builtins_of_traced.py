"""Python's functions of numbers for traced ones: `range`, `int`, `max`, `math.sqrt` and others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from cyxla.numpy.array_methods.python_numbers import kind_of
from cyxla.numpy.rewriting import classes_of_traced, texts_of_traced
from cyxla.numpy.rewriting.decimals import rounded_decimal
from cyxla.numpy.rewriting.iterables import (
    TracedRange,
    backwards,
    combinations,
    enumerated,
    indexed_elements,
    indices,
    zipped,
)
from cyxla.numpy.tracing.classes import is_number
from cyxla.numpy.tracing.conversion import convert
from cyxla.numpy.tracing.doubts import note_doubt
from cyxla.numpy.tracing.promotion import WEAK_DTYPES
from cyxla.numpy.tracing.sized_array import SizedArray
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, is_traced, traced, value_of
from cyxla.numpy.tracing.zero_dim import Rank0
from cyxla.xla.hlo.builder import functions as xla

_np: Any = np  # its functions dispatch to this package
_PYTHON_DTYPES = {int: np.dtype(np.int64), float: np.dtype(np.float64), complex: np.dtype(np.complex128)}

_AMBIGUOUS = "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
_EMPTY = "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty."


def _is_number(value: Any) -> bool:
    """Return True for a traced number, or a traced array without dimensions."""
    return isinstance(value, TracedArray) and value.known is None and value.ndim == 0


def python_number(value: Any, kind: type) -> TracedArray:
    """Convert a traced number to a Python number of a class, as ``int(x)`` and ``float(x)`` do."""
    op = xla.reshape(value_of(value), ())
    return traced(convert(op, _PYTHON_DTYPES[kind]), kind)


def truth(value: Any) -> TracedArray:
    """Return the truth of a traced number.

    Raises
    ------
    ValueError
        The value is an array of more than one element, or of none.
    """
    array = as_traced(value)
    if array.size != 1:
        raise ValueError(_AMBIGUOUS if array.size else _EMPTY)
    return TracedArray(convert(xla.reshape(value_of(array), ()), np.dtype(bool)), rank0=Rank0.PYTHON)


def _range(*bounds: Any) -> Any:
    if not any(map(is_traced, bounds)):
        return range(*bounds)
    return TracedRange.of(*bounds)


def _int(*args: Any, **kwargs: Any) -> Any:
    if len(args) != 1 or kwargs or not _is_number(args[0]):
        return int(*args, **kwargs)
    if args[0].dtype.kind == "c":
        raise TypeError("int() argument must be a string, a bytes-like object or a real number, not 'complex'")
    _fail_unless_finite(args[0])
    return python_number(args[0], int)


def _fail_unless_finite(value: TracedArray) -> None:
    if value.dtype.kind != "f":
        return
    op = xla.reshape(value_of(value), ())
    wide = convert(op, np.dtype(np.float64))
    limit = require_current().constant(2.0**63)
    fits = xla.lt(xla.abs_(wide), limit)
    where = user_line()

    text = f"a float beyond 64 bits, or NaN, is converted to an int\n  at:   {where}"
    require_current().leave_if(xla.not_(fits), lambda _: OverflowError(text), warns=True)


def _float(*args: Any) -> Any:
    if len(args) != 1 or not _is_number(args[0]):
        return float(*args)
    if args[0].dtype.kind == "c":
        raise TypeError("float() argument must be a string or a real number, not 'complex'")
    return python_number(args[0], float)


def _complex(*args: Any) -> Any:
    if not any(map(_is_number, args)):
        return complex(*args)
    real, imaginary = (*args, 0)[:2]
    parts = [value_of(python_number(as_traced(part), float)) for part in (real, imaginary)]
    is_complex = [as_traced(part).dtype.kind == "c" for part in (real, imaginary)]
    if not any(is_complex):
        return traced(xla.complex_(*parts), complex)
    total: Any = python_number(as_traced(real), complex)
    return total if len(args) == 1 else total + python_number(as_traced(imaginary), complex) * 1j


def _bool(*args: Any) -> Any:
    if len(args) != 1 or not (isinstance(args[0], TracedArray) and args[0].known is None):
        return bool(*args)
    return truth(args[0])


def _len(value: Any) -> Any:
    if isinstance(value, SizedArray):
        return value.shape[0]
    if isinstance(value, TracedRange):
        return value.length
    return len(value)


def _extremum(original: Callable[..., Any], better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def substitute(*args: Any, **kwargs: Any) -> Any:
        values = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple, TracedArray)) else list(args)
        if kwargs or len(values) < 2 or not any(map(_is_number, values)):
            return original(*args, **kwargs)
        best = values[0]
        for value in values[1:]:
            best = select(better(value, best), value, best)
        return best

    return substitute


def select(test: Any, first: Any, second: Any) -> Any:
    """Return the first of two numbers if a condition holds, else the second; both are evaluated."""
    if not (isinstance(test, TracedArray) and test.known is None):
        return first if test else second
    one, other = as_traced(first), as_traced(second)
    condition = truth(test)
    result = _np.where(condition, one, other)
    kinds = {kind_of(one), kind_of(other)}
    if None not in kinds and kinds != {bool}:
        weak = max(kinds, key=list(WEAK_DTYPES).index)
        chosen = traced(convert(value_of(result), _PYTHON_DTYPES[weak]), weak)
    else:
        chosen = TracedArray(value_of(result), rank0=Rank0.PYTHON if kinds == {bool} else Rank0.SCALAR)
    note_doubt(chosen, value_of(condition), first, second)
    return chosen


def _sum(values: Any, start: Any = 0) -> Any:
    is_long = isinstance(values, TracedArray) and values.known is None and values.ndim == 1
    if is_long and start == 0 and len(values) > _MAX_UNROLLED_SUM and values.dtype.kind in "biu":
        return values.sum()
    return sum(values, start)


_MAX_UNROLLED_SUM = 16


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
    poles = name in _WITH_POLES
    failed = _np.logical_or(undefined, infinite)
    number = _np.where(infinite, 1, 0)

    def error(is_infinite: int) -> Exception:
        return OverflowError("math range error") if is_infinite and not poles else ValueError("math domain error")

    require_current().fail_if(value_of(as_traced(failed)), value_of(as_traced(number, np.int64)), error)


_TOTAL = frozenset(
    ["atan", "atan2", "asinh", "tanh", "fabs", "cbrt", "erf", "erfc", "copysign", "degrees", "radians"]
)  # defined, and finite, for all finite numbers; those of NaN are NaN
_WITH_POLES = frozenset(["log", "log2", "log10", "log1p", "atanh"])


def _rounded(original: Callable[..., Any], compute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def substitute(value: Any) -> Any:
        if not _is_number(value):
            return original(value)
        return _int(compute(_real(value))) if as_traced(value).dtype.kind == "f" else python_number(value, int)

    return substitute


def _tested(original: Callable[..., Any], compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda value: truth(compute(value)) if _is_number(value) else original(value)


def _log(value: Any, *base: Any) -> Any:
    if not any(map(_is_number, (value, *base))):
        return math.log(value, *base)
    natural = _math(math.log, _np.log)
    return natural(value) / natural(*base) if base else natural(value)


_SAME_NAMES = (
    "sqrt exp expm1 exp2 log2 log10 log1p sin cos tan sinh cosh tanh fabs hypot copysign cbrt degrees radians fmod"
)
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
    if value.dtype.kind != "f":
        return value if count is None and value.weak is int else round(value, *digits, **keyword)
    if count is None:
        return _int(_np.rint(value))
    return rounded_decimal(value, count) if value.weak is float else _np.round(value, count)


SUBSTITUTES: dict[Callable[..., Any], Callable[..., Any]] = {
    range: _range, int: _int, float: _float, complex: _complex, bool: _bool, len: _len,
    max: _extremum(max, lambda a, b: a > b), min: _extremum(min, lambda a, b: a < b), sum: _sum, round: _round,
    enumerate: enumerated, zip: zipped, reversed: backwards, itertools.product: combinations, np.ndindex: indices,
    np.ndenumerate: indexed_elements, math.log: _log,
    **{getattr(math, n): _math(getattr(math, n), getattr(np, f)) for n, f in _FLOAT_FUNCTIONS.items()},
    **{getattr(math, n): _rounded(getattr(math, n), getattr(np, f)) for n, f in _ROUNDING.items()},
    **{getattr(math, n): _tested(getattr(math, n), getattr(np, f)) for n, f in _TESTS.items()},
    **classes_of_traced.SUBSTITUTES, **texts_of_traced.SUBSTITUTES,
}  # fmt: skip
