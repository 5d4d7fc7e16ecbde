"""Functions that tracing calls but packages above it define: each package sets its own when it is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np


class Hooks:
    """Functions of packages above `cyxla.numpy.tracing`; importing `cyxla.numpy` sets all of them.

    Attributes
    ----------
    apply_ufunc : callable
        Result of a method of a ufunc on inputs of which at least one is traced.
    call_function : callable
        Result of a NumPy function for these arguments, of which at least one is traced.
    get_item, set_item : callable
        Indexing of a traced array: ``array[key]`` and ``array[key] = value``.
    sized_ufunc, sized_function : callable
        Results of a ufunc's method, and of a NumPy function, where an array of run-time size takes part.
    sized_creation : callable
        Result of a function that makes an array, such as ``np.zeros``, of a traced size.
    sized_get, sized_set : callable
        Indexing of an array of run-time size.
    sized_item : callable
        The only element of an array of run-time size, as a Python number.
    at : callable
        Object behind ``array.at``.
    substituted : callable
        Context manager in which NumPy's functions without dispatch are substituted.
    give_plain_numpy : callable
        Function that makes compiled modules which crash otherwise refuse traced arrays.
    jit : callable
        `cyxla.jit`.
    rewritten : callable
        Function from a user's function to one whose statements also work on traced values.
    adopt_class : callable
        Function that makes the methods of a class rewritten ones until the trace ends.
    members_of : callable
        Function that returns the attributes of a class without its bases, as the user has defined them.
    is_defined_by_trace : callable
        Function that tells whether the definition of a function is in the code of a rewritten one.
    is_disabled : callable
        Function that tells whether jitted functions run as plain Python on this thread.
    note_element : callable
        Function that notes that a value stands for an element of a list, which must not change then.
    is_in_try_block : callable
        Function that tells whether the user's program executes a ``try`` or ``with`` statement.
    """

    apply_ufunc: Callable[[np.ufunc, str, tuple[Any, ...], Mapping[str, Any]], Any]
    call_function: Callable[..., Any]
    get_item: Callable[[Any, Any], Any]
    set_item: Callable[[Any, Any, Any], None]
    sized_ufunc: Callable[[np.ufunc, str, tuple[Any, ...], Mapping[str, Any]], Any]
    sized_function: Callable[[Callable[..., Any], Any, Any], Any]
    sized_creation: Callable[[Callable[..., Any], Any, Any], Any]
    sized_get: Callable[[Any, Any], Any]
    sized_set: Callable[[Any, Any, Any], None]
    sized_item: Callable[[Any], Any]
    at: Callable[[Any], Any]
    substituted: Callable[[], AbstractContextManager[None]]
    give_plain_numpy: Callable[[], None]
    jit: Callable[..., Any]
    rewritten: Callable[[Any], Any]
    adopt_class: Callable[[type], None]
    members_of: Callable[[type], dict[str, Any]]
    is_defined_by_trace: Callable[[Any], bool]
    is_disabled: Callable[[], bool]
    note_element: Callable[[Any, Any], None]
    is_in_try_block: Callable[[], bool]


hooks = Hooks()
