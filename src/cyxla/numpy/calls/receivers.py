"""Receivers of methods, objects as arguments, and arguments of functions that are inlined into the one being traced."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

import numpy as np

from cyxla._native.arguments import is_array_like
from cyxla._native.dispatch import Receiver
from cyxla.errors import TraceError
from cyxla.numpy.calls.argument_adapters import STATIC_TYPES
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced
from cyxla.numpy.tracing.containers import flatten, kind_of, map_leaves
from cyxla.numpy.tracing.trace import user_line


def receiver_of(instance: Any) -> Any:
    """Return `self` of a method: a container or an array as it is, other objects by identity."""
    if isinstance(instance, type) or is_dataclass(instance) or isinstance(instance, (tuple, list, dict, np.ndarray)):
        return instance
    return Receiver(instance)


def is_receiver(value: Any) -> bool:
    """Return True for an object that can be an argument of a method alone, as its `self`."""
    known = (Receiver, TracedArray, np.ndarray, np.generic, int, float, complex, *STATIC_TYPES)
    return not isinstance(value, known) and kind_of(value) is None and not is_array_like(value)


def is_object_of(value: Any, package: str | None) -> bool:
    """Return True for an object of a class that is written in Python, in a package or module."""
    kind = type(value)
    is_known = kind.__module__.partition(".")[0] == package and is_receiver(value)
    if not is_known or hasattr(kind, "__dlpack__") or hasattr(kind, "__buffer__"):
        return False
    first = kind.__mro__[-2]  # behind it, there is `object` alone
    return first.__module__ != "builtins" and any(name in vars(first) for name in ("__dict__", "__slots__"))


def receiver_value(value: Any) -> Any:
    """Return an argument as the function takes it."""
    return value.value if isinstance(value, Receiver) else value


def inlined_argument(value: Any) -> Any:
    """Return an argument of an inlined function, which may change its containers and traced arrays."""
    if isinstance(value, Receiver):
        return value.value
    is_outside = any(isinstance(leaf, (Receiver, np.ndarray, np.generic)) for leaf in flatten(value)[0])
    return map_leaves(_inlined_leaf, value) if is_outside else value


def _inlined_leaf(leaf: Any) -> Any:
    if isinstance(leaf, Receiver):
        return leaf.value
    if type(leaf) is np.ndarray:
        constant = as_traced(leaf)
        return constant.make_view(_identity, _refuse_write, constant.memory)
    return as_traced(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else leaf


def _identity(op: Any) -> Any:
    return op


def _refuse_write(base: Any, new: Any) -> Any:
    raise TraceError(
        "a function writes to an array from outside that another traced function passes to it", where=user_line(),
        hint="pass the array as an argument of the outer function",
    )  # fmt: skip
