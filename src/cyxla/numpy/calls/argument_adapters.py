"""Adapters for arguments that are not arrays but hold values, such as random generators."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cyxla._native.dispatch import Dispatcher
from cyxla.errors import UnimplementedError
from cyxla.numpy.calls.argument_binding import Binding
from cyxla.numpy.tracing.results.promotion import Dtype
from cyxla.numpy.tracing.user_program.bound_methods import changing_default, changing_object, first_changing
from cyxla.records import dataclass

#: Types of static values: neither arrays nor numbers; they are part of a signature, and of a result.
STATIC_TYPES = (
    str, bytes, np.dtype, type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc, partial,
    Dispatcher, enum.Enum, slice, range, type(Ellipsis), types.GenericAlias, type(np.sum), types.ModuleType,
)  # fmt: skip


@dataclass(frozen=True)
class Adapter:
    """Conversion of one kind of argument to an array.

    Attributes
    ----------
    shape : tuple of int
        Shape of the array.
    dtype : dtype
        Element type of the array.
    array_of : callable
        Function from an argument to the array; called once per run of a program.
    undo_of : callable
        Function from an argument to the one that takes back what `array_of` will change in it.
    from_traced : callable
        Function from the traced array to the argument of the traced function.
    """

    shape: tuple[int, ...]
    dtype: Dtype
    array_of: Callable[[Any], np.ndarray[Any, Any]]
    undo_of: Callable[[Any], Callable[[], None]]
    from_traced: Callable[[Any], Any]


def _next_key(generator: Any) -> np.ndarray[Any, Any]:
    key: np.ndarray[Any, Any] = np.frombuffer(generator.bytes(16), np.uint64)
    return key


def _restore_of(generator: Any) -> Callable[[], None]:
    return partial(setattr, generator.bit_generator, "state", generator.bit_generator.state)


def _generator(key: Any) -> Any:
    from cyxla.numpy.random.traced_generator import generator

    return generator(key)


_GENERATOR = Adapter((2,), np.dtype(np.uint64), _next_key, _restore_of, _generator)


def adapter_of(value: Any) -> Adapter | None:
    """Return the adapter of an argument; None if it needs none.

    Raises
    ------
    UnimplementedError
        The argument has values that a trace would treat as constants.
    """
    kind = type(value)
    if not kind.__module__.startswith("numpy.random"):  # numpy.random may not be imported yet
        return None
    if issubclass(kind, np.random.Generator):
        return _GENERATOR
    raise UnimplementedError(
        f"a numpy.random.{kind.__name__} cannot be an argument", hint="pass numpy.random.default_rng(seed)"
    )


def require_unchanging(value: Any) -> None:
    """Require a static argument that is not a method of an object whose contents may change.

    Raises
    ------
    UnimplementedError
        It is such a method, or a function with a default of that kind.
    """
    changing = changing_object(value)
    if changing is None:
        changing = changing_default(value)
    if changing is not None:
        raise UnimplementedError(
            f"a function that uses a {type(changing).__name__}, whose contents may change, cannot be an argument",
            hint="pass the object itself, and call its method in the function",
        )


def require_unchanging_defaults(binding: Binding) -> None:
    """Require defaults that a call uses to be neither generators nor methods of changing objects.

    Raises
    ------
    UnimplementedError
        A default is one.
    """
    changing = first_changing(a.default for a in binding.arguments if a.source is None)
    if changing is not None:
        raise UnimplementedError(
            f"a {type(changing).__name__}, whose contents may change, cannot be a default",
            hint="pass numpy.random.default_rng(seed) as an argument",
        )
