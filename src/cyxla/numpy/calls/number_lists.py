"""Lists of numbers among the arguments: long ones, and those whose lengths change, are arrays of the program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

MOST_SEPARATE: Final = 32  # numbers of a list, or of the lists in it, that are inputs of their own
LENGTHS_BEFORE: Final = 1  # lengths of a short list for which its numbers are inputs of their own
MOST_IN_SHAPE: Final = 8  # integers of a list that may be a shape or axes; more are indices or tokens, of any length
_DTYPES: Final[dict[type, Any]] = {int: np.int64, float: np.float64, bool: np.bool_, complex: np.complex128}


def class_of_numbers(values: list[Any]) -> type | None:
    """Return the class of Python's numbers in a list, or in lists of one length in it; None if they have several."""
    kinds = set(map(type, values))
    if kinds == {list}:
        kinds = {type(v) for row in values for v in row} if len(set(map(len, values))) == 1 else set()
    kind = kinds.pop() if len(kinds) == 1 else None
    return kind if kind in _DTYPES else None


def number_array(values: list[Any]) -> np.ndarray[Any, Any] | None:
    """Return an array of Python's numbers of one class; None for other lists, and if an integer is too large."""
    kind = class_of_numbers(values)
    if kind is None:
        return None
    try:
        return np.array(values, _DTYPES[kind])
    except OverflowError:
        return None


class NumberLists:
    """Lists among the arguments of a function that are passed as arrays, by the names of the arguments and parts."""

    def __init__(self) -> None:
        self._lengths: dict[str, set[int]] = defaultdict(set)
        self._arrays: set[str] = set()
        self._separate: set[str] = set()

    def grows(self, name: str, values: list[Any]) -> bool:
        """Record the length of a list, and return True if it has had others, or is expected to have."""
        lengths = self._lengths[name]
        if len(lengths) <= LENGTHS_BEFORE:
            lengths.add(len(values))
        return len(lengths) > LENGTHS_BEFORE or (len(values) > MOST_IN_SHAPE and type(values[0]) is int)

    def array_of(self, name: str, values: list[Any]) -> np.ndarray[Any, Any] | None:
        """Return the array that a list is passed as; None if its numbers are passed one by one."""
        if name in self._separate or not values:
            return None
        count = len(values)
        if type(values[0]) is list and type(values[-1]) is list:
            count = sum(len(v) if type(v) is list else 1 for v in values)
        is_array = self.grows(name, values) or count > MOST_SEPARATE or name in self._arrays
        return number_array(values) if is_array else None

    def join(self, names: set[str]) -> bool:
        """Pass lists as arrays from now on; return False if each is already, or its numbers are needed one by one."""
        new = names - self._arrays - self._separate
        self._arrays |= new
        return bool(new)

    def separate(self, names: Iterable[str]) -> None:
        """Pass the numbers of lists one by one from now on, since the function needs them so."""
        self._separate.update(names)
