"""Locks that a forked child does not inherit from threads that it does not have.

A child has one thread, the one that forked. A lock that another thread held would stay held in the child for ever, so
every lock of the package is made here: in the child, those that the forking thread does not hold itself are free again.
What else belongs to threads, such as a pool or a count of those at work, is put right by functions given to
`call_in_child`.

A fork also waits for the modules that other threads are importing for us: they would stay half imported in the child.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from types import MethodType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

PATIENCE = 10.0  # seconds that a fork waits for imports
_LIBRARIES = ("cyxla", "numpy", "scipy", "ml_dtypes")

_locks: WeakSet[Any] = WeakSet()
_functions: list[Callable[[], object]] = []
_methods: WeakKeyDictionary[Any, Callable[[Any], object]] = WeakKeyDictionary()


def new_lock() -> threading.RLock:
    """Make a lock; the thread that holds it may take it again, also in a child that it forks meanwhile."""
    made = threading.RLock()
    _locks.add(made)
    return made


def new_condition() -> threading.Condition:
    """Make a condition with a lock of its own; nobody waits for it in a forked child."""
    made = threading.Condition()
    _locks.add(made)
    return made


def call_in_child(function: Callable[[], object]) -> None:
    """Have a function called in every forked child, once all locks are renewed.

    Parameters
    ----------
    function : callable
        A method is called for as long as its object lives, without keeping it alive; an object has one at most.
    """
    if isinstance(function, MethodType):
        _methods[function.__self__] = function.__func__
    else:
        _functions.append(function)


def _renew() -> None:
    for lock in list(_locks):
        if not lock._is_owned():
            lock._at_fork_reinit()
    for function in _functions:
        function()
    for owner, method in list(_methods.items()):
        method(owner)


def _await_imports() -> None:
    """Wait until no other thread imports one of the libraries that traces and compilations import from."""
    from importlib import _bootstrap

    me, end = threading.get_ident(), time.monotonic() + PATIENCE
    for name, ref in list(getattr(_bootstrap, "_module_locks", {}).items()):
        if name.partition(".")[0] in _LIBRARIES and (lock := ref()) is not None:
            while getattr(lock, "owner", None) not in (None, me) and time.monotonic() < end:
                time.sleep(0.001)


os.register_at_fork(before=_await_imports, after_in_child=_renew)
