"""Random numbers of global states, of NumPy and of Python: the functions that draw them, and draws while tracing."""

# ruff: noqa: NPY002 - the functions of the global state are what this is for
from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.trace import plain_run
from cyxla.numpy.tracing.user_program.bound_methods import is_generator

SAMPLES: Final = ("ranf", "sample")  # other names of `numpy.random.random_sample`
_OF_STATE: Final = ("seed", "get_state", "set_state")


def functions_of_global_state() -> dict[str, Callable[..., Any]]:
    """Return the functions of `numpy.random` that use the global state, by name."""
    state = np.random.mtrand._rand
    names = [n for n in dir(np.random) if getattr(getattr(np.random, n), "__self__", None) is state]
    return {name: getattr(np.random, name) for name in (*names, *_OF_STATE, *SAMPLES)}


@contextmanager
def drawing_in_runs_alone() -> Iterator[None]:
    """Refuse a function that draws from a global state while it is traced, of NumPy or of Python, and restore it.

    Code that is not rewritten calls the functions themselves, as `map` does with those that it gets.

    Raises
    ------
    PlainRunError
        Numbers were drawn.
    """
    before, process = (np.random.get_state(), random.getstate()), os.getpid()
    try:
        yield
    finally:
        has_drawn = os.getpid() == process and _restore(*before)  # Python seeds its state anew in a child
    if has_drawn:
        raise plain_run(
            "random numbers of a global state are drawn while it is traced",
            "pass a generator, np.random.default_rng(seed), as an argument, or use cyxla.random",
        )


def _restore(of_numpy: Any, of_python: Any) -> bool:
    """Restore the global states; return True if one has changed."""
    now = np.random.get_state()
    is_same = all(np.array_equal(a, b) for a, b in zip(now, of_numpy, strict=True))
    if not is_same:
        np.random.set_state(of_numpy)
    if random.getstate() == of_python:
        return not is_same
    random.setstate(of_python)
    return True


def shuffle_of(method: Any) -> Callable[..., None] | None:
    """Return the function to call in the place of ``shuffle`` of a generator of NumPy; None for other methods.

    NumPy swaps the items of arrays that it does not know, which does not exchange rows, since they are views.
    """
    generator = method.__self__
    if method.__name__ != "shuffle" or not is_generator(generator) or isinstance(generator, random.Random):
        return None

    def shuffle(x: Any, *args: Any, **kwargs: Any) -> None:
        if not isinstance(x, TracedArray) or not x.ndim or args[1:] or kwargs.keys() - {"axis"}:
            method(x, *args, **kwargs)
            return
        axis = np.lib.array_utils.normalize_axis_index(args[0] if args else kwargs.get("axis", 0), x.ndim)
        order = np.arange(x.shape[axis])
        if x.size:
            method(order)
        x[...] = np.take(x, order, axis=axis)

    return shuffle
