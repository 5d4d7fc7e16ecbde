"""Specs of arguments: of arrays, of objects that convert to arrays, and those that the user gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla._native.arguments import is_array_like, is_dlpack_alone
from cyxla._native.dispatch import axes_of
from cyxla.errors import DTypeError, OpError, ShapeError, TraceError, UnimplementedError
from cyxla.numpy.calls.lowering import Spec
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, require_plain
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.types import from_numpy


def array_spec(value: Any, name: str) -> Spec:
    """Return the spec of an array.

    Raises
    ------
    DTypeError
        The dtype is not supported by programs.
    """
    dtype = value.dtype if value.dtype.isnative else value.dtype.newbyteorder("=")
    try:
        from_numpy(dtype)
    except OpError:
        raise DTypeError(
            f"argument {name} is an array of dtype {value.dtype}, which cannot be compiled",
            hint="convert it first, such as by x.astype(float)",
        ) from None
    if isinstance(value, np.generic):
        return Spec((), dtype, rank0=Rank0.SCALAR)
    return Spec(value.shape, dtype, axes=axes_of(value))


def array_of(value: Any, name: str) -> Any:
    """Convert an argument to an array by one of NumPy's protocols.

    Raises
    ------
    DTypeError
        The argument does not support any of them.
    """
    if isinstance(value, TracedArray):
        escaped = TraceError(
            f"argument {name} is a traced value of a function that has ended",
            hint="return it from the function instead of keeping it elsewhere",
        )
        escaped.may_fall_back = False
        raise escaped
    for kind in (float, int, complex):  # subclasses of Python's numbers
        if isinstance(value, kind):
            convert: Any = kind
            return convert(value)
    require_plain(value, f"argument {name}")
    if is_dlpack_alone(value):
        return np.from_dlpack(value)
    if isinstance(value, (np.ndarray, memoryview, bytearray)) or is_array_like(value) or _is_buffer(value):
        return np.asarray(value).view(np.ndarray)
    raise DTypeError(
        f"argument {name} is a {type(value).__name__}, which is neither an array nor a number nor a container",
        hint="name it in static= if it can be hashed, or make its class a dataclass of arrays",
    )


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def spec(shape: Any, dtype: Any = float) -> Spec:
    """Describe an array argument.

    Parameters
    ----------
    shape : int or sequence of int
        Dimension sizes.
    dtype : dtype
        Element type.

    Raises
    ------
    ShapeError, DTypeError
        There is no such array.
    UnimplementedError
        A size is None.

    Examples
    --------
    >>> print(spec((3, 4), "f4"))
    float32[3,4]
    """
    sizes = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    if None in sizes:
        raise UnimplementedError(
            f"spec: the shape {shape} has sizes of None, but the sizes of a program are fixed",
            hint="jit compiles once for each size; pad arrays to a few sizes",
        )
    try:
        array = np.broadcast_to(np.empty((), np.dtype(dtype)), [s.__index__() for s in sizes])
    except (ValueError, AttributeError):
        raise ShapeError(f"spec: {shape!r} is not a shape") from None
    except TypeError:
        raise DTypeError(f"spec: {dtype!r} is not a dtype") from None
    return array_spec(array, "spec")


def is_pair(value: Any) -> bool:
    """Return True if a value is a pair of shape and dtype."""
    if type(value) is not tuple or len(value) != 2 or not isinstance(value[0], (tuple, list)):
        return False
    if not all(s is None or hasattr(s, "__index__") for s in value[0]) or isinstance(value[1], (tuple, list)):
        return False
    return isinstance(value[1], (str, type, np.dtype))
