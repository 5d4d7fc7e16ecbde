"""`disable_jit`: jitted functions run as plain Python, for debuggers and for comparisons with NumPy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cyxla import config
from cyxla._native.dispatch import begin_trace, end_trace
from cyxla.forking import call_in_child
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.trace import current


class _State(threading.local):
    depth = 0  # nesting of `disable_jit` on this thread


_STATE = _State()


def is_disabled() -> bool:
    """Return True if jitted functions run as plain Python on this thread."""
    return _STATE.depth > 0 or bool(config.get("DISABLE_JIT"))


def needs_python() -> bool | None:
    """Return True if a call on this thread must not be dispatched to a compiled program by its signature, else None."""
    return True if current() is not None or is_disabled() else None


@contextmanager
def disable_jit() -> Iterator[None]:
    """Run jitted functions as plain Python within a context, on the thread that entered it.

    Functions with the decorator `cyxla.jit` run on NumPy's arrays, as if they had no decorator, and so do those that
    they call: `print`, debuggers and `pdb` see values. `cyxla.cond`, `cyxla.while_loop` and the others of their kind
    are Python's statements, too, and `cyxla.vmap` is a loop. Derivatives are still traced, since they have no plain
    Python. ``CYXLA_DISABLE_JIT=1`` does the same for all functions that are not compiled yet.

    Examples
    --------
    >>> import numpy as np
    >>> from cyxla import jit
    >>> @jit
    ... def double(x):
    ...     print(x)
    ...     return 2 * x
    >>> with disable_jit():
    ...     double(np.arange(3))
    [0 1 2]
    array([0, 2, 4])
    """
    _STATE.depth += 1
    begin_trace()  # while there is a trace, C asks `needs_python` on every call
    try:
        yield
    finally:
        end_trace()
        _STATE.depth -= 1


def _recount() -> None:
    """Count the contexts of the forking thread again, in a child whose traces were counted anew."""
    for _ in range(_STATE.depth):
        begin_trace()


call_in_child(_recount)
hooks.is_disabled = is_disabled


def call_disabled(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function as plain Python."""
    with disable_jit():
        return function(*args, **kwargs)
