"""Operations of traced arrays that need ufuncs or indexing: ``__array_ufunc__``, ``x[i]``, ``x[i] = v``, ``x.at``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cyxla.numpy.tracing.arrays.deferred_array import defer_ufunc
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.stacked_list import arrays_of_sized_lists
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.registry import implementation_of
from cyxla.numpy.ufuncs.apply import call


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the result of ``ufunc.method(*inputs, **kwargs)`` where a traced array takes part."""
    inputs = arrays_of_sized_lists(inputs)
    operands = (*inputs, kwargs.get("where"), *(inputs[1] if method == "at" and type(inputs[1]) is tuple else ()))
    if any(isinstance(x, SizedArray) for x in operands):
        return hooks.sized_ufunc(ufunc, method, inputs, kwargs)
    deferred = defer_ufunc(ufunc, method, inputs, kwargs)
    if deferred is not None:
        return deferred
    if method != "__call__":
        from cyxla.numpy.indexing.parse import RunTimeSizeError
        from cyxla.numpy.ufunc_methods.methods import METHODS

        try:
            return METHODS[method](ufunc, *inputs, **kwargs)
        except RunTimeSizeError:  # of an index of `at`
            return hooks.sized_ufunc(ufunc, method, inputs, kwargs)
    if ufunc.signature is not None:
        return implementation_of(ufunc)(*inputs, **kwargs)
    return call(ufunc, inputs, **kwargs)


def _get_item(array: Any, key: Any) -> Any:
    from cyxla.numpy.indexing.access import get
    from cyxla.numpy.indexing.parse import RunTimeSizeError

    if _has_run_time_size(key):
        return hooks.sized_get(array, key)
    try:
        return get(array, key)
    except RunTimeSizeError:
        return hooks.sized_get(array, key)


def _set_item(array: Any, key: Any, value: Any) -> None:
    from cyxla.numpy.indexing.access import assign
    from cyxla.numpy.indexing.parse import RunTimeSizeError

    if _has_run_time_size(key) or isinstance(value, SizedArray):
        hooks.sized_set(array, key, value)
        return
    try:
        assign(array, key, value)
    except RunTimeSizeError:
        hooks.sized_set(array, key, value)


def _has_run_time_size(key: Any) -> bool:
    return any(isinstance(item, SizedArray) for item in (key if type(key) is tuple else (key,)))


def _sized_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    from cyxla.numpy.sized.dispatch import call_ufunc

    return call_ufunc(ufunc, method, inputs, kwargs)


def _sized_function(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    from cyxla.numpy.sized.dispatch import call_function

    return call_function(function, args, kwargs)


def _sized_creation(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    from cyxla.numpy.sized.windows import FUNCTIONS

    return FUNCTIONS[function.__name__](*args, **kwargs)


def _sized_get(array: Any, key: Any) -> Any:
    from cyxla.numpy.sized.access import get

    return get(array, key)


def _sized_set(array: Any, key: Any, value: Any) -> None:
    from cyxla.numpy.sized.access import assign

    assign(array, key, value)


def _sized_item(array: Any) -> Any:
    from cyxla.numpy.sized.access import only_element

    message = "can only convert an array of size 1 to a Python scalar"
    return only_element(array, empty=message, several=message).item()


def _at(array: Any) -> Any:
    from cyxla.numpy.indexing.access import IndexedUpdates

    return IndexedUpdates(array)


hooks.apply_ufunc = apply_ufunc
hooks.get_item, hooks.set_item, hooks.at = _get_item, _set_item, _at
hooks.sized_ufunc, hooks.sized_function = _sized_ufunc, _sized_function
hooks.sized_creation = _sized_creation
hooks.sized_get, hooks.sized_set, hooks.sized_item = _sized_get, _sized_set, _sized_item
