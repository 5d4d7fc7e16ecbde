"""Python's functions of classes and attributes for traced values: `type`, `isinstance`, `getattr` and others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.numpy.state.mirrors import MirrorDict, MirrorList
from cyxla.numpy.state.scope import Scope
from cyxla.numpy.substitutes.patched_numpy import NDARRAY
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import LazyList, TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.user_program.classes import class_of, is_number
from cyxla.numpy.ufuncs.apply import convert_checked

_np: Any = np  # its functions dispatch to this package
_MIRRORED: dict[type, type] = {MirrorList: list, MirrorDict: dict}
_SCALARS = (
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.longlong, np.uint8, np.uint16, np.uint32, np.uint64,
    np.ulonglong, np.float16, np.float32, np.float64, np.complex64, np.complex128,
)  # fmt: skip


def visible_class(value: Any) -> Any:
    """Return ``type(value)``: the class of the value in NumPy, which is what ``np.ndarray`` is in the program."""
    kind = list if isinstance(value, LazyList) else _MIRRORED.get(type(value)) or class_of(value)
    return NDARRAY if kind is np.ndarray else kind


def _type(*args: Any, **kwargs: Any) -> Any:
    return type(*args, **kwargs) if len(args) != 1 or kwargs else visible_class(args[0])


def _isinstance(value: Any, classes: Any) -> bool:
    """Take traced arrays for those of NumPy, and traced numbers for those that they are."""
    if not isinstance(value, (TracedArray, SizedArray)) or isinstance(value, classes):
        return isinstance(value, classes)
    return issubclass(class_of(value), classes)


def _callable(value: Any) -> bool:
    return callable(value) and not is_number(value)


def _isscalar(value: Any) -> bool:
    return np.isscalar(value) or is_number(value)


def _scalar_class(kind: type) -> Callable[..., Any]:
    """Return the substitute for a class of NumPy's scalars, which converts numbers and arrays."""

    def substitute(*args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs or not is_traced(args[0]):
            return kind(*args, **kwargs)
        if isinstance(args[0], (list, tuple)):
            return _np.array(args[0], kind)
        array, dtype = as_traced(args[0]), np.dtype(kind)
        if array.weak is complex and dtype.kind in "iuf":
            return kind(array)  # raises
        op = convert_checked(array, dtype) if array.weak is int else convert(value_of(array), dtype)
        return TracedArray(op, rank0=Rank0.SCALAR)

    return substitute


#: Substitutes that need no more than their arguments.
SUBSTITUTES: dict[Any, Callable[..., Any]] = {
    type: _type, isinstance: _isinstance, callable: _callable, np.isscalar: _isscalar,
    **{kind: _scalar_class(kind) for kind in _SCALARS},
}  # fmt: skip


def _getattr(scope: Scope) -> Callable[..., Any]:
    def substitute(value: Any, name: str, *default: Any) -> Any:
        try:
            return scope.read_attr(value, name)
        except AttributeError:
            if default:
                return default[0]
            raise

    return substitute


def _hasattr(scope: Scope) -> Callable[..., Any]:
    def substitute(value: Any, name: str) -> bool:
        try:
            scope.read_attr(value, name)
        except AttributeError:
            return False
        return True

    return substitute


def _vars(scope: Scope) -> Callable[..., Any]:
    def substitute(*value: Any) -> Any:
        return scope.read_attr(value[0], "__dict__") if value else sys._getframe(1).f_locals

    return substitute


#: Substitutes that read or write what the function sees, by its scope.
SUBSTITUTES_IN_SCOPE: dict[Any, Callable[[Scope], Callable[..., Any]]] = {
    getattr: _getattr, hasattr: _hasattr, setattr: lambda scope: scope.write_attr,
    delattr: lambda scope: scope.delete_attr, vars: _vars,
}  # fmt: skip
