"""Locks that are released in a forked child if another thread of the parent held them.

A child has only the thread that forked. A lock that another thread held would stay locked in the child for ever, so
all locks of the package are created here: in the child, those that the forking thread does not hold are reset. Other
state of threads, such as a thread pool or the number of busy threads, is reset by functions given to `call_in_child`.

A fork also waits for modules that other threads are importing, since these would stay partially imported in the child.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from types import MethodType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

IMPORT_TIMEOUT = 10.0  # seconds that a fork waits for imports
_LIBRARIES = ("cyxla", "numpy", "scipy", "ml_dtypes")

_locks: WeakSet[Any] = WeakSet()
_functions: list[Callable[[], object]] = []
_methods: WeakKeyDictionary[Any, Callable[[Any], object]] = WeakKeyDictionary()


def new_lock() -> threading.RLock:
    """Create a reentrant lock, which its holder keeps in a child that it forks."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def new_condition() -> threading.Condition:
    """Create a condition with a lock of its own; it has no waiters in a forked child."""
    condition = threading.Condition()
    _locks.add(condition)
    return condition


def call_in_child(function: Callable[[], object]) -> None:
    """Register a function that is called in every forked child, after all locks are reset.

    Parameters
    ----------
    function : callable
        Function or bound method. A method is called as long as its object lives, and does not keep it alive; an object
        can have at most one.
    """
    if isinstance(function, MethodType):
        _methods[function.__self__] = function.__func__
    else:
        _functions.append(function)


def _reset_in_child() -> None:
    for lock in list(_locks):
        if not lock._is_owned():
            lock._at_fork_reinit()
    for function in _functions:
        function()
    for owner, method in list(_methods.items()):
        method(owner)


def _wait_for_imports() -> None:
    """Wait until no other thread is importing a library that tracing or compilation needs."""
    from importlib import _bootstrap

    me, end = threading.get_ident(), time.monotonic() + IMPORT_TIMEOUT
    for name, ref in list(getattr(_bootstrap, "_module_locks", {}).items()):
        if name.partition(".")[0] in _LIBRARIES and (lock := ref()) is not None:
            while getattr(lock, "owner", None) not in (None, me) and time.monotonic() < end:
                time.sleep(0.001)


os.register_at_fork(before=_wait_for_imports, after_in_child=_reset_in_child)
