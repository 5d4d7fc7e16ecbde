"""Calls in which an array that the function writes shares memory with another argument.

An array that is passed several times is one argument of a program of its own. If the write is the last thing that the
function does, the program writes to a copy instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from cyxla.numpy.calls.entries import Entry
from cyxla.numpy.tracing.containers import flatten, kind_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.trace import current


def arrays_of(values: Sequence[Any]) -> list[Any]:
    """Return the arrays of the arguments of a call."""
    return [leaf for value in values for leaf in flatten(value)[0] if isinstance(leaf, np.ndarray)]


def run_on_copy(entry: Entry, leaves: Sequence[Any]) -> Any:
    """Run a program that writes one array, as the last thing, on a copy of it; then write to the array."""
    (number,) = entry.lowered.writes
    target = leaves[number]
    copy = target.copy("K")
    result = entry([copy if k == number else v for k, v in enumerate(leaves)], None)
    np.copyto(target, copy)
    return _replaced(result, copy, target)


def _replaced(value: Any, old: Any, new: Any) -> Any:
    """Return a result with an array in the place of another one; containers without it stay the same objects."""
    if value is old:
        return new
    kind = kind_of(value)
    if kind is None:
        return value
    parts = kind.parts(value)
    made = [_replaced(part, old, new) for part in parts]
    is_same = all(one is other for one, other in zip(made, parts, strict=True))
    return value if is_same else kind.build(kind.key(value), made)


class SameArrays:
    """Compiled functions of the distinct arguments of calls that pass an array several times."""

    def __init__(self) -> None:
        self._merged: dict[Any, Any] = {}  # by the number of each argument among the distinct ones, and the keywords

    def bind(self, function: Any, args: Sequence[Any], kwnames: Sequence[str]) -> Callable[[], Any] | None:
        """Return a compiled function's call of the distinct arguments; None if no array is passed twice."""
        numbers: dict[int, int] = {}
        pattern = tuple([numbers.setdefault(_identity(a, k), len(numbers)) for k, a in enumerate(args)])
        if len(numbers) == len(args):
            return None
        key = (pattern, tuple(kwnames))
        if key not in self._merged:
            self._merged[key] = _merge(function, pattern, tuple(kwnames))
        distinct = [args[pattern.index(k)] for k in range(len(numbers))]
        merged = self._merged[key]
        return lambda: merged(*distinct)


def _merge(function: Any, pattern: tuple[int, ...], kwnames: tuple[str, ...]) -> Any:
    count = len(pattern) - len(kwnames)
    reference = ref(function)  # which keeps what is made here

    def merged(*distinct: Any) -> Any:
        values = [distinct[k] for k in pattern]
        jitted: Any = reference()
        called = jitted if current() is not None else jitted.function
        return called(*values[:count], **dict(zip(kwnames, values[count:], strict=True)))

    made = hooks.jit(
        merged, platform=function.platform, bounds=function.bounds, fallback=function.fallback, name=function.name,
        sizes=function.sizes, **function.options,
    )  # fmt: skip
    made.is_internal = function.is_internal
    return made


def _identity(value: Any, position: int) -> int:
    """Return a number that is equal for positions of one array."""
    return id(value) if type(value) is np.ndarray else -1 - position
