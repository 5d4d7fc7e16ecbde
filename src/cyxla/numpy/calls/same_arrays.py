"""Calls that pass one array several times to a function that writes to it: the array is one argument of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.trace import current


class SameArrays:
    """Compiled functions of the distinct arguments of calls that pass an array several times.

    Parameters
    ----------
    function : callable
        Compiled function.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._merged: dict[Any, Any] = {}  # by the number of each argument among the distinct ones, and the keywords

    def bind(self, args: Sequence[Any], kwnames: Sequence[str]) -> Callable[[], Any] | None:
        """Return the call of the distinct arguments; None if no array is passed twice."""
        numbers: dict[int, int] = {}
        pattern = tuple([numbers.setdefault(_identity(a, k), len(numbers)) for k, a in enumerate(args)])
        if len(numbers) == len(args):
            return None
        key = (pattern, tuple(kwnames))
        if key not in self._merged:
            self._merged[key] = self._merge(pattern, tuple(kwnames))
        distinct = [args[pattern.index(k)] for k in range(len(numbers))]
        merged = self._merged[key]
        return lambda: merged(*distinct)

    def _merge(self, pattern: tuple[int, ...], kwnames: tuple[str, ...]) -> Any:
        jitted = self._function
        count = len(pattern) - len(kwnames)

        def merged(*distinct: Any) -> Any:
            values = [distinct[k] for k in pattern]
            called = jitted if current() is not None else jitted.function
            return called(*values[:count], **dict(zip(kwnames, values[count:], strict=True)))

        return hooks.jit(
            merged, platform=jitted.platform, bounds=jitted.bounds, fallback=jitted.fallback, name=jitted.name,
            sizes=jitted.sizes, **jitted.options,
        )  # fmt: skip


def _identity(value: Any, position: int) -> int:
    """Return a number that is equal for positions of one array."""
    return id(value) if type(value) is np.ndarray else -1 - position
