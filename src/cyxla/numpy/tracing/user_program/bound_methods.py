"""Methods of C that are bound to an object whose contents their calls read or change, as `rng.normal` and `w.pop`.

A program sees neither the calls nor the contents, and would repeat what they gave while it was traced.
"""

from __future__ import annotations

import random
from array import array
from collections import deque
from collections.abc import Iterable
from functools import partial
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, Final

import numpy as np

_CONTAINERS: Final = (list, dict, set, bytearray, deque, array, np.ndarray)
_METHODS: Final = (BuiltinMethodType, MethodType, partial)


def changing_object(function: Any) -> Any:
    """Return the object that a bound method of C, or a partial of one, reads or changes; None for other values.

    Examples
    --------
    >>> w = [1, 2]
    >>> changing_object(w.pop)
    [1, 2]
    >>> changing_object("a".join) is None
    True
    """
    if not isinstance(function, _METHODS):
        return None
    if isinstance(function, partial):
        found = (changing_object(function.func), *function.args, *function.keywords.values())
        return next((v for v in found if v is not None and (v is found[0] or is_generator(v))), None)
    owner = function.__self__
    if is_generator(owner):
        return owner
    if isinstance(function, MethodType):
        return _state_of_distribution(owner)
    return owner if isinstance(owner, _CONTAINERS) else None


def is_generator(value: Any) -> bool:
    """Return True for a generator of random numbers other than the global ones of NumPy and Python."""
    kind = type(value)
    if isinstance(value, random.Random):
        return value is not getattr(random.random, "__self__", None)
    if not kind.__module__.startswith("numpy.random"):  # numpy.random may not be imported yet
        return False
    kinds = (np.random.Generator, np.random.RandomState, np.random.BitGenerator)
    return isinstance(value, kinds) and value is not np.random.mtrand._rand


def changing_default(function: Any) -> Any:
    """Return a default of a Python function that is a generator, or a method of a changing object; None without one."""
    function = function.__func__ if isinstance(function, MethodType) else function
    if not isinstance(function, FunctionType):
        return None
    return first_changing((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()))


def first_changing(values: Iterable[Any]) -> Any:
    """Return the first generator among values, or the object of a method there that changes it; None without one."""
    for value in values:
        found = value if is_generator(value) else changing_object(value)
        if found is not None:
            return found
    return None


def _state_of_distribution(owner: Any) -> Any:
    """Return the generator of a distribution of SciPy; None for the global one, and for other objects."""
    if not type(owner).__module__.startswith("scipy.stats"):
        return None
    state = getattr(owner, "random_state", None)
    return state if is_generator(state) else None
