"""Zeros in place of elements that NumPy leaves uninitialised.

What they hold would become constants of the program. It would differ between processes, so that no other process found
the program in the disk cache, and the cache and libraries built ahead of time would keep data of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# NumPy's own functions, whatever the tracing thread sees under their names
_EMPTY: Any = frozenset({np.empty, np.empty_like})
_PAD, _ZEROS, _ZEROS_LIKE = np.pad, np.zeros, np.zeros_like
#: Functions without `out=` whose mask `where=` leaves elements of the result uninitialised, besides ufuncs.
_MASKED: Any = frozenset({np.clip, np.ndarray.clip})


def initialised(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Call a function of NumPy, with zeros for elements that it leaves uninitialised.

    Parameters
    ----------
    function : callable
        NumPy's own function, ufunc, or method of either.
    args : sequence
        Positional arguments.
    kwargs : dict
        Keyword arguments.
    """
    if function is _PAD:
        args, kwargs = _padded_by_zeros(args, kwargs)
    result = function(*args, **kwargs)
    if function in _EMPTY:
        return zeros_of(result)
    where = kwargs.get("where", True)
    if where is not True and _is_masked(function):
        given = list(_arrays((args, kwargs.get("out"))))
        return _selected(result, where, given)
    return result


def zeros_of(array: Any) -> Any:
    """Return an array of zeros in place of a new one; other values, and arrays of objects, as they are."""
    if not isinstance(array, np.ndarray) or array.dtype.hasobject:
        return array
    if type(array) is np.ndarray and array.flags.forc:  # zeros that need no memory until they are written or read
        return _ZEROS(array.shape, array.dtype, "F" if array.flags.fnc else "C")
    return _ZEROS_LIKE(array)


def _padded_by_zeros(args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the arguments of ``np.pad`` with zeros for a border that is uninitialised."""
    if "constant_values" in kwargs:  # which NumPy refuses for such a border
        return args, kwargs
    if kwargs.get("mode") == "empty":
        return args, {**kwargs, "mode": "constant"}
    return ([*args[:2], "constant"], kwargs) if list(args[2:]) == ["empty"] else (args, kwargs)


def _is_masked(function: Any) -> bool:
    """Return True if the mask ``where=`` of a function selects elements of its result."""
    method_of = getattr(function, "__self__", None)
    is_outer = isinstance(method_of, np.ufunc) and function.__name__ == "outer"
    return is_outer or isinstance(function, np.ufunc) or function in _MASKED


def _arrays(value: Any) -> Iterator[Array]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _arrays(part)


def _selected(result: Any, where: Any, given: list[Array]) -> Any:
    """Set new elements of a result that a mask does not select to zero."""
    if isinstance(result, tuple):
        return tuple([_selected(r, where, given) for r in result])
    if isinstance(result, np.generic):
        return result if where else result.dtype.type(0)
    if isinstance(result, np.ndarray) and not result.dtype.hasobject and not any(result is a for a in given):
        np.copyto(result, np.zeros((), result.dtype), where=~np.asarray(where, bool))
    return result
