"""Calls of ufuncs and functions of NumPy where an array of run-time size takes part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

import numpy as np

from cyxla.numpy.sized import elementwise
from cyxla.numpy.sized.table import HANDLERS, Handler, bind, original
from cyxla.numpy.sized.ufunc_methods import METHODS
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, filled, raise_unsupported, raise_unsupported_function
from cyxla.numpy.tracing.registry import full_name, implementation_of
from cyxla.numpy.tracing.results.result_layout import set_result_layout
from cyxla.numpy.tracing.trace import require_current

#: Modules of this package that register functions, most used first; those up to that of a function are imported.
FAMILIES: Final = (
    "elementwise", "reductions", "joining", "movement", "products", "creation", "shapes", "matrices", "indices",
    "statistics", "sorting", "quantiles", "linear_algebra", "polynomials", "segments", "transforms",
)  # fmt: skip
_WRITERS: Final = (np.put, np.put_along_axis, np.putmask, np.place, np.copyto, np.fill_diagonal)  # to their arguments


def handler_of(function: Callable[..., Any]) -> Handler | None:
    """Return the implementation of one of NumPy's functions; None without one."""
    for family in FAMILIES:
        if function in HANDLERS:
            break
        import_module(f"{__package__}.{family}")
    return HANDLERS.get(function)


def call_function(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Return the result of a NumPy function of which an argument has a run-time size.

    Raises
    ------
    TraceError
        The function is not in the table.
    """
    function = original(function)
    handler = handler_of(function)
    if handler is None:
        implementation_of(function)  # raises if arrays of known size are not supported either
        raise_unsupported_function(function)
    result = _handled(function, handler, bind(function, args, kwargs))
    if args:
        set_result_layout(result, full_name(function), args, kwargs)
    return result


def _handled(function: Callable[..., Any], handler: Handler, arguments: dict[str, Any]) -> Any:
    if not require_current().program.gradients:
        return handler(function, arguments)
    if function not in _WRITERS:
        arguments = {name: value if name == "out" else _with_finite_padding(value) for name, value in arguments.items()}
    return _with_empty_padding(handler(function, arguments))


def _with_finite_padding(value: Any) -> Any:
    """Return arguments with ones in the padding, by which the derivatives of other arguments may be multiplied."""
    if type(value) in (list, tuple):
        return type(value)(map(_with_finite_padding, value))
    is_inexact = isinstance(value, SizedArray) and value.dtype.kind in "fc"
    return value.like(filled(value, 1)) if is_inexact else value


def _with_empty_padding(result: Any) -> Any:
    """Return results with zeros in the padding, whose derivatives would otherwise reach elements of the operands."""
    if isinstance(result, (tuple, list)):
        parts = map(_with_empty_padding, result)
        return result._make(parts) if hasattr(result, "_make") else type(result)(parts)
    is_inexact = isinstance(result, SizedArray) and result.dtype.kind in "fc"
    return result.like(filled(result, 0)) if is_inexact else result


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the result of a method of a ufunc where an array of run-time size takes part."""
    if method == "__call__":
        if ufunc.signature is not None:
            return call_function(ufunc, inputs, kwargs)
        return elementwise.apply(ufunc, inputs, kwargs)
    if method not in METHODS:
        raise_unsupported(f"be passed to np.{ufunc.__name__}.{method}")
    return METHODS[method](ufunc, *inputs, **kwargs)
