"""Calls of ops that repeat: the kernel for arrays of known types is found again without inference of attributes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from cyxla.core.framework.types import DataType

#: Types of attributes that are part of a key; equal values of different types are different.
_SIMPLE: Final = frozenset({bool, int, float, str, type(None), DataType})


class RepeatedCall(NamedTuple):
    """A call with arrays of known types and known attributes.

    Attributes
    ----------
    run : callable
        Function of the list of inputs that returns what the call does.
    names : tuple of str
        Names of the inputs that are given by name, in order; they follow those that are given by position.
    """

    run: Callable[[list[Any]], Any]
    names: tuple[str, ...]


def key_of(function: Hashable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Hashable:
    """Return a key of the calls of an op's function that have inputs of the same types, and the same attributes.

    It is None if an input is no array, or an attribute is a list or array-like.
    """
    parts: list[Any] = [function]
    for value in args:
        if type(value) is not np.ndarray:
            return None
        parts.append(value.dtype)
    for name, value in kwargs.items():
        kind = type(value)
        if kind is np.ndarray:
            parts += (name, value.dtype)
        elif kind in _SIMPLE:
            parts += (name, kind, value)
        else:
            return None
    return tuple(parts)


def inputs_by_name(inputs: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the names of the inputs that a call gives by name; None unless it gives all, each as an array."""
    names = tuple(inputs[len(args) :])
    return names if all(type(kwargs.get(name)) is np.ndarray for name in names) else None


def is_repeatable(values: Sequence[Any], flat: Sequence[Any]) -> bool:
    """Return whether the inputs of an op are the values of a call as they are, of types that their dtypes tell."""
    if len(values) != len(flat) or any(a is not b for a, b in zip(values, flat, strict=True)):
        return False
    return all(type(v) is np.ndarray and not v.dtype.hasobject for v in flat)
