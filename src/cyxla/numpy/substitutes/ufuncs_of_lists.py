"""NumPy's ufuncs on lists of traced arrays: NumPy dispatches on arguments, not on members of lists."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from cyxla.numpy.substitutes.proxy import Proxy
from cyxla.numpy.tracing.arrays.sized_array import is_sized
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, is_traced
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.results.uninitialised import initialised
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import current

_ARRAY_ARGUMENTS = {
    "reduce": 1,
    "accumulate": 1,
    "reduceat": 1,
    "outer": 2,
}  # by method, the number of leading arguments that are arrays


class UfuncOfLists(Proxy):
    """Proxy of a ufunc that accepts lists of traced arrays.

    Parameters
    ----------
    ufunc : numpy.ufunc
        Original; attributes not defined here are its own.
    """

    def __init__(self, ufunc: np.ufunc) -> None:
        super().__init__(ufunc)
        self.__module__ = "numpy"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the ufunc with lists of traced arrays stacked."""
        result = initialised(self.__wrapped__, stack_lists(args, self.nin), kwargs)
        return _mark_as_arrays(result) if kwargs.get("out") is ... else result

    def __getattr__(self, name: str) -> Any:
        attribute = super().__getattr__(name)
        return _accept_lists(attribute, _ARRAY_ARGUMENTS[name]) if name in _ARRAY_ARGUMENTS else attribute


def is_traced_list(value: Any) -> bool:
    """Return True for a list that holds traced arrays, or arrays of run-time size."""
    return isinstance(value, (list, tuple)) and (is_traced(value) or is_sized(value))


def as_array(value: Any) -> Any:
    """Return an array in the place of a list that holds traced arrays; other values as they are."""
    if not is_traced_list(value):
        return value
    array: Any = np.array  # dispatches to this package
    return hooks.sized_function(array, (value,), {}) if is_sized(value) else array(value)


def stack_lists(args: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """Replace lists that hold traced arrays among the first arguments by arrays."""
    if current() is None or not any(isinstance(a, (list, tuple)) for a in args[:count]):
        return args
    return (*map(as_array, args[:count]), *args[count:])


def _mark_as_arrays(result: Any) -> Any:
    """Mark results of ``out=...`` as arrays also at rank 0; NumPy does not pass that keyword on."""
    for value in result if isinstance(result, tuple) else (result,):
        if isinstance(value, TracedArray):
            value.rank0 = Rank0.ARRAY
    return result


def _accept_lists(method: Callable[..., Any], count: int) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = initialised(method, stack_lists(args, count), kwargs)
        return _mark_as_arrays(result) if kwargs.get("out") is ... else result

    return call
