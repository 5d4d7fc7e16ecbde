"""Assertions of `numpy.testing` about traced values: where one fails, the plain function runs, and NumPy raises.

A program checks no more than is enough for NumPy to be content; whether a doubtful case fails is left to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

import numpy as np

from cyxla.numpy.tracing.arrays.traced_array import TracedArray, is_traced, value_of
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.tracing.user_program.classes import is_number

_np: Any = np  # its functions dispatch to this package
_MODULE: Final = "numpy.testing"


def _equal(x: Any, y: Any) -> Any:
    return _np.equal(x, y)


def _same(x: Any, y: Any) -> Any:
    """Return where numbers are equal, with the signs of zeros."""
    is_nonzero = _np.not_equal(x, 0)
    if "c" in (x.dtype.kind, y.dtype.kind):
        return _np.logical_and(_np.equal(x, y), is_nonzero)
    signs = _np.equal(_np.copysign(1.0, x), _np.copysign(1.0, y))
    return _np.logical_and(_np.equal(x, y), _np.logical_or(is_nonzero, signs))


def _almost_equal(x: Any, y: Any, decimal: Any) -> Any:
    if not {"f", "c"} & {x.dtype.kind, y.dtype.kind}:  # integers, whose difference is exact
        return _np.equal(x, y)
    return _np.abs(x - y) < 1.5 * 10.0 ** (-decimal)


def _close(x: Any, y: Any, rtol: Any = 1e-7, atol: Any = 0, equal_nan: bool = True) -> Any:
    return _np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)


def _less(x: Any, y: Any) -> Any:
    return _np.less(x, y)


# conditions of elements, with the defaults of their further arguments in NumPy's order
_CONDITIONS: Final[dict[str, tuple[Callable[..., Any], dict[str, Any]]]] = {
    "assert_equal": (_same, {}), "assert_array_equal": (_equal, {}), "assert_array_less": (_less, {}),
    "assert_almost_equal": (_almost_equal, {"decimal": 7}),
    "assert_array_almost_equal": (_almost_equal, {"decimal": 6}),
    "assert_allclose": (_close, {"rtol": 1e-7, "atol": 0, "equal_nan": True}),
}  # fmt: skip


def is_assertion(function: Any) -> bool:
    """Return True for an assertion of `numpy.testing` that programs can check."""
    is_function = isinstance(function, FunctionType) and str(function.__module__).startswith(_MODULE)
    return is_function and function.__name__ in _CONDITIONS


def substitute_of(function: Any) -> Callable[..., Any] | None:
    """Return what checks an assertion of `numpy.testing` in each run; None for other functions."""
    if not is_assertion(function):
        return None
    name: str = function.__name__
    condition, defaults = _CONDITIONS[name]

    def check(x: Any, y: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("strict") or not _is_checked(x, y):
            function(x, y, *args, **kwargs)
            return
        given = dict(zip(defaults, args, strict=False)) | {k: v for k, v in kwargs.items() if k in defaults}
        is_right = _np.ndim(x) == 0 or _np.ndim(y) == 0 or _np.shape(x) == _np.shape(y)
        if is_right:
            is_right = _np.all(condition(_np.asarray(x), _np.asarray(y), **(defaults | given)))
        text = f"{name} fails\n  at:   {user_line()}"
        failed = value_of(_np.logical_not(is_right)) if is_traced(is_right) else None
        trace = require_current()
        if failed is None:
            failed = trace.constant(not is_right, np.dtype(bool))
        trace.leave_if(failed, lambda _: AssertionError(text))

    return check


def _is_checked(x: Any, y: Any) -> bool:
    """Return True for arrays and numbers, one of them traced; lists and dicts are compared by the function itself."""
    values = (x, y)
    is_array = [isinstance(v, (TracedArray, np.ndarray, np.generic)) for v in values]
    is_other = [isinstance(v, (int, float, complex)) or _is_list_of_numbers(v) for v in values]
    return (
        any(is_array) and all(a or b for a, b in zip(is_array, is_other, strict=True)) and any(map(is_traced, values))
    )


def _is_list_of_numbers(value: Any) -> bool:
    return type(value) is list and all(isinstance(v, (int, float, complex)) or is_number(v) for v in value)
