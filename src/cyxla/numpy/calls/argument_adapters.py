"""Arguments of traced functions that are no arrays and yet have values: what goes in for them, what stands for them."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cyxla._native.dispatch import Dispatcher
from cyxla.errors import UnimplementedError
from cyxla.numpy.tracing.promotion import Dtype

#: Of what is neither an array nor a number and never changes: part of a signature, and of a result.
STATIC_TYPES = (
    str, bytes, np.dtype, type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc, partial,
    Dispatcher, enum.Enum, slice, range, type(Ellipsis), types.GenericAlias, type(np.sum), types.ModuleType,
)  # fmt: skip


@dataclass(frozen=True)
class Adapter:
    """How one kind of argument becomes an array.

    Attributes
    ----------
    shape : tuple of int
        Sizes of the array.
    dtype : dtype
        Its element type.
    array_of : callable
        From an argument to the array; called once in each run.
    stand_in : callable
        From the traced array to what the function is given.
    """

    shape: tuple[int, ...]
    dtype: Dtype
    array_of: Callable[[Any], np.ndarray[Any, Any]]
    stand_in: Callable[[Any], Any]


def _next_key(generator: Any) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = np.frombuffer(generator.bytes(16), np.uint64)
    return found


def _generator(key: Any) -> Any:
    from cyxla.numpy.random.traced_generator import generator

    return generator(key)


_GENERATOR = Adapter((2,), np.dtype(np.uint64), _next_key, _generator)


def adapter_of(value: Any) -> Adapter | None:
    """The adapter of an argument; None for what stands for itself.

    Raises
    ------
    UnimplementedError
        It has values that a trace would take for constants.
    """
    kind = type(value)
    if not kind.__module__.startswith("numpy.random"):  # not imported before someone makes a generator
        return None
    if issubclass(kind, np.random.Generator):
        return _GENERATOR
    raise UnimplementedError(f"numpy.random.{kind.__name__} as an argument", hint="numpy.random.default_rng(seed)")
